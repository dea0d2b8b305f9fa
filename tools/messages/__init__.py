"""Messages of streams and recordings: commands that send and print them."""
