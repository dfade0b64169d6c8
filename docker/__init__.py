"""What runs where GitHub or Docker is: executed here without them."""
