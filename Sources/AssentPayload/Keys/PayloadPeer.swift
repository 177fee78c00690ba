/// Who a session of payload encryption is between, as both sides put it into their keys. It is a class because it never
/// changes, and each message hands it on: a node has very many of them, in a table of which half is empty.
package final class PayloadPeer: Hashable, Sendable {
    /// Whose session it is.
    package enum Role: String, Hashable, Sendable, CaseIterable {
        /// Any installation of the app: nobody has proved a key.
        case app
        /// The installation that `client` names, by a proof with its registered key.
        case device
    }

    package let role: Role
    /// The listener's origin, as in `https://api.bank.example`.
    package let origin: String
    /// The client id of the installation; `nil` for ``Role/app``.
    package let client: String?
    package let app: String
    package let version: String
    package let platform: String

    package init(role: Role, origin: String, client: String?, app: String, version: String, platform: String) {
        (self.role, self.origin, self.client) = (role, origin, client)
        (self.app, self.version, self.platform) = (app, version, platform)
    }

    /// Two are equal when all that they say is.
    package static func == (left: PayloadPeer, right: PayloadPeer) -> Bool {
        left === right
            || left.role == right.role && left.origin == right.origin && left.client == right.client
                && left.app == right.app && left.version == right.version && left.platform == right.platform
    }

    /// Hashes all that it says.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(role)
        hasher.combine(origin)
        hasher.combine(client)
        hasher.combine(app)
        hasher.combine(version)
        hasher.combine(platform)
    }
}
