import AssentServer
import Foundation

extension ClientFile {
    /// The file for a running server's first public client.
    init?(endpoints: Endpoints, configuration: ServerConfiguration) {
        guard let client = configuration.firstPublicClient else { return nil }
        var hosts: [String] = []
        for url in [endpoints.server, endpoints.gateway].compactMap(\.self) {
            if let host = URLComponents(string: url)?.host, !hosts.contains(host) { hosts.append(host) }
        }
        self.init(
            server: endpoints.server, realm: client.realm, cookieName: endpoints.cookieName, clientID: client.id,
            redirectURI: client.redirectURI, scopes: client.scopes, journey: client.journey,
            resources: endpoints.gateway.map { [Resource(origin: $0, credential: "accessToken")] } ?? [],
            authority: endpoints.authorityFile, pins: hosts.map { HostPins(host: $0, pins: endpoints.pins) })
    }
}
