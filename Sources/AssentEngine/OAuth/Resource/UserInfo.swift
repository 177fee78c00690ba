package import AssentCore
import AssentStore

/// Which claims a scope gives, and which of the user's attributes they come from.
enum UserClaims {
    /// Scope, claim, attributes in the order in which they are tried: AM's names and the claim's own.
    static let table: [(scope: String, claim: String, attributes: [String])] = [
        ("profile", "name", ["name", "cn"]), ("profile", "given_name", ["given_name", "givenName"]),
        ("profile", "family_name", ["family_name", "sn"]), ("profile", "middle_name", ["middle_name"]),
        ("profile", "nickname", ["nickname"]), ("profile", "picture", ["picture"]),
        ("profile", "profile", ["profile"]), ("profile", "website", ["website"]),
        ("profile", "zoneinfo", ["zoneinfo"]), ("profile", "locale", ["locale", "preferredlocale"]),
        ("profile", "updated_at", ["updated_at"]), ("email", "email", ["email", "mail"]),
        ("email", "email_verified", ["email_verified"]),
        ("phone", "phone_number", ["phone_number", "telephoneNumber"]),
        ("phone", "phone_number_verified", ["phone_number_verified"]), ("address", "address", ["address"]),
    ]

    /// The claims about `user` that `scopes` give (OpenID Connect Core §5.4).
    static func claims(about user: User, scopes: [String]) -> JSONObject {
        var claims = JSONObject()
        claims["sub"] = .string(user.id)
        for row in table where scopes.contains(row.scope) {
            claims[row.claim] = row.attributes.lazy.compactMap { user.attributes[$0] }.first
        }
        if scopes.contains("profile") { claims["preferred_username"] = .string(user.username) }
        return claims
    }

    /// Those of the claims `names` that `user` has, whatever scope gives them.
    static func chosen(_ names: [String], about user: User) -> JSONObject {
        guard !names.isEmpty else { return JSONObject() }
        let all = claims(about: user, scopes: Array(Set(names.compactMap(scope(of:)))))
        var chosen = JSONObject()
        for name in names { chosen[name] = all[name] }
        return chosen
    }

    /// The claims that a scope gives.
    static let selectable = ["preferred_username"] + table.map(\.claim)

    /// The claims that there are, for the metadata.
    static let names = ["sub", "iss", "auth_time"] + selectable

    /// The scope that gives a claim; `nil` for a claim that none gives.
    static func scope(of claim: String) -> String? {
        claim == "preferred_username" ? "profile" : table.first { $0.claim == claim }?.scope
    }
}

extension OAuthProvider {
    /// The userinfo endpoint (OpenID Connect Core §5.3).
    ///
    /// - Throws: ``OAuthError`` `insufficient_scope` without `openid`.
    package func userInfo(of access: AccessGrant) throws(OAuthError) -> JSONValue {
        guard access.scopes.contains("openid"), let user = access.owner?.user else {
            throw .insufficientScope("openid")
        }
        return .object(UserClaims.claims(about: user, scopes: access.scopes))
    }

    /// Notes that a client has used the session of its user, where that is a use (``OAuthProviderConfiguration``).
    package func noteUse(of access: AccessGrant) async throws {
        try await sessions.note(use(of: access.owner, isOffline: access.isOffline))
    }

    /// The statement that notes a use of the session; `nil` when there is nothing to note. A grant that outlives its
    /// session does not show that a user is there.
    func use(of owner: ResourceOwner?, isOffline: Bool) -> SQLStatement? {
        guard configuration.tokensKeepSessions, !isOffline, let session = owner?.session else { return nil }
        return sessions.touching(session)
    }

    /// The same for a valid grant that only the statements before it know; `grantID` is a query in parentheses.
    func use(ofGrant grantID: SQL) -> SQLStatement? {
        guard configuration.tokensKeepSessions else { return nil }
        return sessions.touching(
            whoseIDIs: "SELECT g.session_id FROM grants g WHERE g.id = \(grantID) AND g.is_offline = 0")
    }
}
