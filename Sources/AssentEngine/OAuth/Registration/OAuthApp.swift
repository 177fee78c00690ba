import AssentCore
import AssentJOSE
package import AssentSigningProtocol

/// An app whose installations register and become clients of their own (RFC 7591), as the operator's file defines it.
/// It is the most that an instance can have.
package struct OAuthApp: Sendable, Hashable {
    /// What an instance must show besides a key.
    package enum Admission: Sendable, Hashable {
        /// An initial access token of an administrator.
        case token
        /// A software statement.
        case statement
        /// Nothing: anyone may register.
        case open
    }

    /// What stands between the app's id and the instance's own part of a client id. No app has it in its id.
    package static let separator: Character = "~"

    /// How many bytes at random a client id has, which are 22 characters.
    static let randomBytes = 16

    /// What each instance has at most. Its id is the app's.
    package var client: OAuthClient

    /// What an instance must show besides a key.
    package var admission = Admission.token

    /// What its versions may do.
    package var versions = AppVersions()

    /// The oldest version that is to be used, which installations are told (docs/device-configuration.md); `nil` when
    /// there is none.
    package var minimumVersion: DottedVersion?

    /// Who signs software statements for the app; `nil` when nobody does.
    package var statements: SoftwareStatements?

    /// How many instances there may be at a time.
    package var maximumInstances: Int64 = 100_000

    /// How many registrations are tried in a minute.
    package var registrationsPerMinute: Int64 = 60

    /// How many requests to register one address may send in a minute.
    package var registrationsPerAddress: Int64 = 10

    /// After how many days without use an instance is deleted.
    package var days: Int64 = 90

    /// What users get at most who are only remembered; `nil` when nobody is let in so.
    package var implicitScopes: [String]?

    /// Whether its users may sign in so that nothing is left of it but a session as long as an access token.
    package var allowsStateless = false

    /// Where its users may be led by a link that signs a browser in, each a whole URL; empty when it has no such links.
    package var webLinks: [String] = []

    /// An app. What the client is, a key, is seen to here.
    package init(_ client: OAuthClient) {
        self.client = client
        self.client.kind = .keyed(ClientKeys(.listed(JWKSet([]))))
    }

    /// Its id.
    package var id: String { client.id }

    /// The app that a client id is of; `nil` for an id that no instance can have.
    static func id(ofInstance id: String) -> String? {
        // By bytes: each call with a token asks several times, and most ids have no such character.
        let mark = separator.asciiValue
        guard let end = id.utf8.firstIndex(where: { $0 == mark }) else { return nil }
        let own = Substring(id.utf8[id.utf8.index(after: end)...])
        guard own.utf8.count == 22, Base64URL.decode(own)?.count == randomBytes else { return nil }
        return String(Substring(id.utf8[..<end]))
    }

    /// The kinds of sessions that its installations may not have. Sessions of these kinds that began earlier are no
    /// longer valid.
    var closedKinds: [SessionKind] {
        SessionKind.allCases.filter { kind in
            switch kind {
            case .user: false
            case .implicit: implicitScopes == nil
            case .stateless: !allowsStateless
            }
        }
    }

    /// What is wrong with the definition, one sentence each; empty when nothing is.
    package func validate() -> [String] {
        var faults: [String] = []
        let isName = client.id.utf8.allSatisfy { $0.isURIUnreserved && $0 != UInt8(ascii: "~") }
        if !(1...64).contains(client.id.utf8.count) || !isName {
            faults.append("an app's id has 1 to 64 letters, digits and - . _")
        }
        var client = client
        // It has no key of its own, and needs none.
        client.kind = .confidential(secretHash: Base64URL.encode([UInt8](repeating: 0, count: 32)))
        faults += client.validate()
        if admission == .statement, statements == nil {
            faults.append("\(id): registration by statement needs softwareStatements")
        }
        if implicitScopes?.isEmpty == true { faults.append("\(id): implicit has no scopes") }
        for scope in implicitScopes ?? [] where !client.scopes.contains(scope) {
            faults.append("\(id): implicit has the scope \(scope), which is not one of the app's")
        }
        if implicitScopes?.contains(where: { ["openid", OAuthClient.offlineAccess].contains($0) }) == true {
            faults.append("\(id): implicit cannot have openid or offline_access: a remembered user has proved nothing")
        }
        if implicitScopes != nil, !client.grantTypes.contains(.jwtBearer) {
            faults.append("\(id): implicit needs the grant type \(OAuthClient.GrantType.jwtBearer.rawValue)")
        }
        if allowsStateless, !client.grantTypes.contains(.authorizationCode) {
            faults.append("\(id): stateless needs the grant type \(OAuthClient.GrantType.authorizationCode.rawValue)")
        }
        faults += WebLinkTarget.faults(webLinks).map { "\(id): \($0)" }
        if days * 86_400 < client.refreshTokenLifetime {
            faults.append("\(id): registrationDays are fewer than a refresh token is valid")
        }
        return faults
    }
}

extension OAuthProviderConfiguration {
    /// The clients of the file, and the apps as their instances have them at most.
    var definitions: [OAuthClient] { Array(clients.values) + apps.values.map(\.client) }

    /// The app of an instance's client id; `nil` when the file has none.
    func app(ofInstance id: String) -> OAuthApp? { OAuthApp.id(ofInstance: id).flatMap { apps[$0] } }

    /// Whether the grants of a client may outlive the sessions that they were given in: whether the file lists
    /// `offline_access` for it or, for an instance, for its app. It is asked where a session has ended, and a client is
    /// too large to be copied for that.
    func mayOutlive(_ clientID: String) -> Bool {
        if let place = clients.index(forKey: clientID) {
            return clients.values[place].scopes.contains(OAuthClient.offlineAccess)
        }
        // What becomes of a client that is not defined any more, others decide.
        guard let app = OAuthApp.id(ofInstance: clientID), let place = apps.index(forKey: app) else { return true }
        return apps.values[place].client.scopes.contains(OAuthClient.offlineAccess)
    }

    /// What the file says of a client: itself or, for an instance, the most that it can have. Whether there is such an
    /// instance, ``ClientAuthenticator/find(_:)`` knows.
    package func definition(of id: String) -> OAuthClient? {
        if let client = client(id) { return client }
        guard var client = app(ofInstance: id)?.client else { return nil }
        client.id = id
        return client
    }
}
