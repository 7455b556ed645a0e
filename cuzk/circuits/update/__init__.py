"""The circuit of SnapDeals (empty sector update, tree D by SHA-256), as its proving keys fix it."""
