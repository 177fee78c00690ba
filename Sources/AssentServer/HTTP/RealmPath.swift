/// Which realm and which endpoint a path below `/json` or `/oauth2` names.
///
/// AM's clients write realms in several ways (am-server reference: `realms/root/realms/alpha`, the short
/// `realms/alpha`, the old `alpha`, and `?realm=/alpha`, which overrides the path); all mean the same.
struct RealmPath: Hashable {
    /// The realm, for example `/` or `/alpha/beta`.
    let realm: String

    /// What follows, without slashes at its ends, for example `authenticate` or `connect/jwk_uri`.
    let endpoint: String

    /// Reads a path.
    ///
    /// - Parameters:
    ///   - path: what follows `/json` or `/oauth2`, as it was sent: no realm's name and no endpoint needs an escape.
    ///   - realmParameter: the value of `?realm=`, when there is one.
    ///   - endpoints: the first segments that endpoints can have; another first segment is a realm in the old form.
    init?(_ path: String, realmParameter: String?, endpoints: Set<String>) {
        // By bytes: every request comes by here.
        let pieces = path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        // Clients write one slash at the end. Empty segments elsewhere are a base URL that has one too many.
        guard !pieces.dropFirst().dropLast().contains(where: \.isEmpty) else { return nil }
        var segments = pieces.filter { !$0.isEmpty }.map { String(Substring($0)) }[...]
        var realm: [String] = []
        while segments.count >= 2, segments.first == "realms" {
            let name = segments[segments.startIndex + 1]
            if !(realm.isEmpty && name == "root") { realm.append(name) }
            segments = segments.dropFirst(2)
        }
        if realm.isEmpty {
            while let first = segments.first, !endpoints.contains(first), segments.count > 1 {
                realm.append(first)
                segments = segments.dropFirst()
            }
        }
        guard let first = segments.first, endpoints.contains(first), realm.count <= 8 else { return nil }
        if let realmParameter {
            let parts = realmParameter.split(separator: "/", omittingEmptySubsequences: true).map(String.init)
            guard parts.count <= 8 else { return nil }
            realm = parts.first == "root" && parts.count == 1 ? [] : parts
        }
        self.realm = "/" + realm.joined(separator: "/")
        endpoint = segments.joined(separator: "/")
    }

    /// The path by which a realm is named in full, for example `/realms/root/realms/alpha`.
    static func path(of realm: String) -> String {
        (["root"] + realm.split(separator: "/").map(String.init)).map { "/realms/\($0)" }.joined()
    }
}
