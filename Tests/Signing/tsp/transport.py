"""HTTP for the device: requests to one server, and nothing that retries."""
import http.client
import ssl
from urllib.parse import urlsplit

LIMIT = 256 * 1024


class HTTPTransport:
    """Sends to `connect` (a URL), or to the issuer itself. `ca` is a file with the certificates to trust, `source` the
    address to send from."""

    def __init__(self, ca=None, connect=None, timeout=3600, source=None):
        self.connect = connect
        self.timeout = timeout
        self.source = (source, 0) if source else None
        self.context = None if ca is None else ssl.create_default_context(cafile=ca)

    def __call__(self, method, url, headers, body):
        target = urlsplit(url)
        place = urlsplit(self.connect) if self.connect else target
        if place.scheme == "https":
            context = self.context or ssl.create_default_context()
            connection = http.client.HTTPSConnection(place.hostname, place.port, timeout=self.timeout, context=context,
                                                     source_address=self.source)
        else:
            connection = http.client.HTTPConnection(place.hostname, place.port, timeout=self.timeout,
                                                    source_address=self.source)
        try:
            path = target.path + ("?" + target.query if target.query else "")
            connection.request(method, path, body, {"Host": target.netloc, **headers})
            response = connection.getresponse()
            data = response.read(LIMIT + 1)
            if len(data) > LIMIT:
                raise OSError("the answer is too large")
            return response.status, {name.lower(): value for name, value in response.getheaders()}, data
        finally:
            connection.close()
