"""Messages of the service; generated from cuzk.proto by protoc (docs/service.md says how)."""
