/// Which versions of the apps seal their calls, as the operator's file says
/// (docs/payload-encryption.md, "The server's switch").
package struct SealedVersions: Sendable {
    /// The apps of each realm.
    private let realms: [String: [OAuthApp]]

    /// The names of the gateway's routes whose calls must be sealed, whatever client sends them.
    private let routes: [String]

    /// The apps of each realm, and the names of routes whose calls must be sealed.
    package init(_ realms: [String: [OAuthApp]], routes: [String] = []) {
        (self.realms, self.routes) = (realms, routes)
    }

    /// Whether a version of an app gets no session. It is told in a handshake, which knows no realm: where several have
    /// an app of this name, all of them must say so.
    func isOff(_ app: String, version: String) -> Bool {
        let found = realms.values.joined().filter { $0.id == app }
        return !found.isEmpty && found.allSatisfy { $0.versions.sealing(of: version) == .off }
    }

    /// The versions whose calls must be sealed, one text each for people, in order.
    package var required: [String] {
        realms.flatMap { realm, apps in
            apps.flatMap { app in app.versions.sealed.map { "\($0) of the app \(app.id) of \(realm)" } }
        }.sorted()
    }

    /// What an operator is told when such calls must be sealed, and there is no key for it; `nil` when none must.
    package var warning: String? {
        let required = required.map { "the version \($0)" } + routes.map { "the route \($0)" }
        guard let first = required.first else { return nil }
        let more = required.count == 1 ? "" : " and \(required.count - 1) more"
        return """
            payloadEncryption is required for \(first)\(more), and there is no valid key for it, so that \
            all their calls are refused: 'assent admin payload-keys add', and give the keys to clients
            """
    }
}
