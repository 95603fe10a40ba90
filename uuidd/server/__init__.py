"""The server: both dialects on one socket, over trio."""
