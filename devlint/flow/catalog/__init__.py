"""Library knowledge as data: what torch and other libraries do with devices, and how it is read."""
