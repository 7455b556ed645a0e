"""The circuit of Filecoin's Proof of Spacetime (fallback PoSt): WinningPoSt and WindowPoSt, as their proving keys fix it."""
