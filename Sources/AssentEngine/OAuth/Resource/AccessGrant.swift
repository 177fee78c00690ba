package import AssentCore
import AssentJOSE
import AssentStore

/// What an access token stands for, as it was when the token was looked up.
package struct AccessGrant: Sendable {
    /// The grant's id, which stays the same over refreshes.
    package let grantID: String

    /// The token's own id (`jti`); not a secret.
    package let tokenID: String

    /// The client that the token was issued to.
    package let clientID: String

    /// The user who has given the grant; `nil` for a token of the client itself.
    package let owner: ResourceOwner?

    /// What it is for.
    package let scopes: [String]

    /// The resource servers that it is for.
    package let audience: [String]

    /// The class of the sign-in that the grant was given after (RFC 9470 §6).
    package let acr: String?

    /// When it was issued, in seconds since 1970.
    package let issuedAt: Int64

    /// When it expires, in seconds since 1970.
    package let expiresAt: Int64

    /// The key that the token is bound to (RFC 9449 §6), if it is bound.
    package let sender: SenderBinding?

    /// Whether the grant outlives the session that it was given in.
    package let isOffline: Bool

    /// The app that the client is an installation of; `nil` for a client of the file.
    package let app: String?

    /// Which version of the app the installation says that it is.
    package var version: String?

    /// On which platform it says that it runs.
    package var platform: String?
}

/// Why an access token is not valid. For the log and the audit record; the client gets
/// ``OAuthError/invalidToken``.
package enum AccessRefusal: String, Sendable, Hashable {
    /// It is not an access token that a key of ours has signed.
    case notOurs
    /// Its time is over.
    case expired
    /// It was revoked by itself.
    case revoked
    /// Its grant was revoked, or is forgotten.
    case grantEnded
    /// The session that its grant was given in has ended, and it has not the scope `offline_access`.
    case sessionEnded
    /// Its user may not sign in any more.
    case userInactive
    /// Its client is not defined any more.
    case clientUnknown
    /// Its client is an installation of a version that is served no more.
    case versionDisabled
    /// The app allows no sessions of its kind any more (implicit or stateless).
    case kindDisabled
    /// It is bound to a key, and the caller has not proved that it holds that key; or it is bound to none where it
    /// must be.
    case keyMismatch
    /// There is none, and the service lets nobody in without one.
    case missing
    /// It was issued for another service.
    case otherAudience
    /// It lacks a scope that the service asks for.
    case insufficientScope
}

/// The outcome of looking at an access token.
package enum AccessCheck: Sendable {
    /// It is valid.
    case granted(AccessGrant)
    /// It is not valid.
    case refused(AccessRefusal)
}

extension OAuthProvider {
    /// What an access token stands for, or `nil`. See ``check(accessToken:keyThumbprint:)``, which tells why.
    package func access(token: Secret, keyThumbprint: String? = nil) async throws -> AccessGrant? {
        guard case .granted(let grant) = try await check(accessToken: token, keyThumbprint: keyThumbprint) else {
            return nil
        }
        return grant
    }

    /// Whether an access token is valid now: signed by us for this issuer, not expired, not revoked, its grant, user
    /// and client as they were. The caller checks ``AccessGrant/audience`` and ``AccessGrant/scopes``.
    ///
    /// - Parameters:
    ///   - token: the token, without `Bearer`.
    ///   - keyThumbprint: the thumbprint of the key whose DPoP proof the route has verified; a token that is bound to a
    ///     key is not valid without.
    /// - Returns: what it stands for, or why it is not valid.
    /// - Throws: ``StoreError``.
    package func check(accessToken token: Secret, keyThumbprint: String? = nil) async throws -> AccessCheck {
        guard let claims = try await accessClaims(token) else { return .refused(.notOurs) }
        guard claims.expiresAt > now else { return .refused(.expired) }
        let row = try await context.database.run(claims.reading(realm: configuration.realm, at: now)).first
        return try check(claims, found: row, keyThumbprint: keyThumbprint)
    }

    /// Whether an access token that has not expired is valid, as ``check(accessToken:keyThumbprint:)`` says, by what
    /// ``AccessLookUps`` has found.
    ///
    /// - Throws: ``StoreError`` when the row is not what it must be.
    func check(_ claims: AccessClaims, found row: SQLRow?, keyThumbprint: String?) throws -> AccessCheck {
        guard let row else { return .refused(.grantEnded) }
        let grant = try GrantRecord(row)
        guard try !row.bool("token_revoked") else { return .refused(.revoked) }
        if let refusal = grant.refusalByFile(mayOutlive: configuration.mayOutlive(grant.clientID)) {
            return .refused(refusal)
        }
        // Asked so that a client of the file, which is large, is not copied.
        let isOfInstance = !configuration.clients.keys.contains(grant.clientID)
        let app = isOfInstance ? configuration.app(ofInstance: grant.clientID) : nil
        if isOfInstance {
            // Grants of an instance that has ended are not there any more.
            guard let app else { return .refused(.clientUnknown) }
            guard app.versions.status(of: grant.version) != .disabled else { return .refused(.versionDisabled) }
        }
        guard grant.clientID == claims.clientID, grant.owner?.user.id ?? grant.clientID == claims.subject
        else { return .refused(.notOurs) }
        guard claims.sender?.isProved(byKey: keyThumbprint) ?? true else { return .refused(.keyMismatch) }
        // An instance never has more than its app, and a remembered user never more than the app lets them.
        var scopes = claims.scopes
        if let app {
            scopes = scopes.filter(app.client.scopes.contains)
            let kind = grant.owner?.session?.kind ?? .user
            guard !app.closedKinds.contains(kind) else { return .refused(.kindDisabled) }
            if kind == .implicit { scopes = scopes.filter((app.implicitScopes ?? []).contains) }
        }
        return .granted(
            AccessGrant(
                grantID: grant.id, tokenID: claims.tokenID, clientID: grant.clientID, owner: grant.owner,
                scopes: scopes, audience: claims.audience, acr: grant.acr, issuedAt: claims.issuedAt,
                expiresAt: claims.expiresAt, sender: claims.sender, isOffline: grant.isOffline,
                app: isOfInstance ? OAuthApp.id(ofInstance: grant.clientID) : nil,
                version: grant.version, platform: grant.platform))
    }

    /// The claims of an access token of this issuer, expired or not.
    func accessClaims(_ token: Secret) async throws -> AccessClaims? {
        let digest = VerifiedTokens.digest(of: token)
        if let known = verifiedTokens.find(digest, now: now),
            try await keys.counts(keyID: known.keyID, for: .accessToken)
        {
            return known.claims
        }
        let verified = try await keys.verified(token, type: Self.accessTokenType, for: .accessToken)
        guard let verified, verified.claims.iss == configuration.issuer, var claims = AccessClaims(verified.claims)
        else { return nil }
        claims.digest = VerifiedTokens.text(of: digest)
        verifiedTokens.keep(.init(claims: claims, keyID: verified.keyID), for: digest, now: now)
        return claims
    }
}

/// The claims of an access token, all of which are always there.
struct AccessClaims: Sendable {
    let grantID: String
    let tokenID: String
    let clientID: String
    let subject: String
    let scopes: [String]
    let audience: [String]
    let issuedAt: Int64
    let expiresAt: Int64
    let sender: SenderBinding?

    /// The SHA-256 of the whole token as base64url, which the proofs of its key name (RFC 9449 §4.2).
    var digest: String?

    /// Whether it is a token of the client itself (RFC 9068 §2.2). Its grant has neither user nor session, and neither
    /// is looked for.
    var isOfClientItself: Bool { subject == clientID }

    /// How the rest of what an access token stands for is found.
    func reading(realm: String, at now: Int64) -> SQLStatement {
        Self.reading(values(realm: realm, at: now), isOfClientItself: isOfClientItself)
    }

    /// The same by the values that stand in its text.
    static func reading(_ values: [SQLValue], isOfClientItself: Bool) -> SQLStatement {
        .read((isOfClientItself ? textOfClientItself : text).with(values))
    }

    /// What stands in the texts that find the token.
    func values(realm: String, at now: Int64) -> [SQLValue] {
        [.text(tokenID), .text(grantID), .text(realm), .integer(now)]
    }

    /// The text of ``reading(realm:at:)``, which nearly every request runs.
    private static let text: SQLTemplate = {
        let found = Self.found(tokenID: "tokenID", grantID: "grantID", realm: "realm", at: .min)
        return SQLTemplate(
            "SELECT \(found.columns) FROM \(found.source)", standIns: ["tokenID", "grantID", "realm", .integer(.min)])
    }()

    /// The same for tokens of clients themselves, as gateways elsewhere have them.
    private static let textOfClientItself: SQLTemplate = {
        let (tokenID, grantID, realm) = ("tokenID", "grantID", "realm")
        return SQLTemplate(
            """
            SELECT \(GrantRecord.ownColumns), \(revoked(tokenID)) AS token_revoked
            FROM \(GrantRecord.joinedWithoutUser) AND g.id = \(grantID) AND g.realm = \(realm)
            """, standIns: [.text(tokenID), .text(grantID), .text(realm)])
    }()

    /// How often a token was revoked.
    static func revoked(_ tokenID: String) -> SQL {
        "(SELECT count(*) FROM revoked_access_tokens r WHERE r.id = \(tokenID))"
    }

    /// What is read, and where it comes from: all in one read, so that nothing can end between two of them.
    static func found(
        tokenID: String, grantID: String, realm: String, at now: Int64
    ) -> (columns: SQL, source: SQL) {
        (
            columns: "\(GrantRecord.columns), \(revoked(tokenID)) AS token_revoked",
            source: "\(GrantRecord.joined(at: now)) WHERE g.id = \(grantID) AND g.realm = \(realm)"
        )
    }

    init?(_ claims: JWTClaims) {
        guard let grantID = claims[OAuthProvider.grantClaim]?.string, let tokenID = claims.jti,
            let subject = claims.sub,
            let clientID = claims["client_id"]?.string, let scope = claims["scope"]?.string,
            let issuedAt = claims["iat"]?.integer, let expiresAt = claims["exp"]?.integer
        else { return nil }
        self.grantID = grantID
        self.tokenID = tokenID
        self.clientID = clientID
        self.subject = subject
        scopes = scope.split(separator: " ").map(String.init)
        audience = claims.aud
        self.issuedAt = issuedAt
        self.expiresAt = expiresAt
        sender = claims["cnf"].map(SenderBinding.init(confirmation:))
    }
}
