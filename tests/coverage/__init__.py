"""What the tests execute of each file of the product, and the least that it has to be."""
