"""Control sessions: requests of clients, their authorisation and the responses.

`feature` is the interface by which others add requests.
"""
