"""Replays and recording signals as a client reads them."""
