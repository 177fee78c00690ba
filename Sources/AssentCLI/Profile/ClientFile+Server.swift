import AssentEngine
import AssentServer
import AssentTokens
import Foundation

extension ClientFile {
    /// The file for a running server's first app, whose installations register, may call in their own name where a
    /// route of the gateway accepts that, and remember their users where the app may.
    static func ofApp(endpoints: Endpoints, configuration: ServerConfiguration) -> ClientFile? {
        for realm in configuration.realms {
            guard let app = realm.apps.first, let redirectURI = app.client.redirectURIs.first,
                var file = ClientFile(endpoints: endpoints, configuration: configuration)
            else { continue }
            let routes = configuration.gateway?.routes.filter { $0.accepts.contains(.device) } ?? []
            let wanted = Set(routes.flatMap(\.scopes))
            let own = app.client.scopes.filter(wanted.contains)
            (file.realm, file.clientID, file.redirectURI) = (realm.name, app.id, redirectURI)
            file.journey = realm.defaultJourney ?? file.journey
            file.scopes = app.client.scopes.filter { !wanted.contains($0) }
            let implicit = configuration.gateway?.routes.filter { $0.accepts.contains(.implicit) } ?? []
            let remembered = (app.implicitScopes ?? []).filter(Set(implicit.flatMap(\.scopes)).contains)
            file.registration = Registration(
                deviceScopes: own, remembersUsers: app.client.grantTypes.contains(.jwtBearer),
                implicitScopes: remembered)
            for index in file.resources.indices {
                if !own.isEmpty { file.resources[index].kinds.insert(.device) }
                if !remembered.isEmpty { file.resources[index].kinds.insert(.implicit) }
            }
            return file
        }
        return nil
    }

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
            resourceBase: endpoints.gateway,
            authority: endpoints.authorityFile, pins: hosts.map { HostPins(host: $0, pins: endpoints.pins) })
    }
}
