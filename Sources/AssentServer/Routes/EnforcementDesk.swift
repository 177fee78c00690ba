import AssentEngine

/// What answers gateways elsewhere in one realm.
struct EnforcementDesk: Sendable {
    /// The scope that their access tokens have.
    static let scope = "enforcement"

    /// What decides.
    let access: RemoteAccess

    private let groups: [String: EnforcementGroup]

    /// A desk for these groups, no two of which have a client in common.
    init(_ groups: [EnforcementGroup], access: RemoteAccess) {
        self.access = access
        self.groups = Dictionary(
            groups.flatMap { group in group.clients.map { ($0, group) } }, uniquingKeysWith: { first, _ in first })
    }

    /// The group of a client; `nil` when it is in none.
    func group(of client: OAuthClient) -> EnforcementGroup? { groups[client.id] }
}
