public import AssentCore
public import Foundation

/// What the token endpoint granted.
public struct TokenSet: Sendable, Equatable {
    /// The access token, to be sent as `Bearer` (RFC 6750 §2.1), or as `DPoP` with a proof where it is bound to a key
    /// (``isBound``). ``TokenManager/credential(for:url:nonce:)`` gives what is sent.
    public let accessToken: Secret

    /// What gets the next access token; `nil` when the server gave none.
    public let refreshToken: Secret?

    /// Who signed in; `nil` when `openid` was not asked for.
    public let idToken: IDToken?

    /// What was granted.
    public let scopes: [String]

    /// When the access token ends; `nil` when the server did not say.
    public let expiresAt: Date?

    /// When they were got, by this machine's clock.
    public let obtainedAt: Date?

    /// The digest of the session that the tokens were got with (base64url); `nil` when it was none of AM's.
    public let sessionFingerprint: String?

    /// The key that the tokens are bound to; `nil` for bearer tokens.
    let key: KeyBinding?

    /// Whether the tokens are bound to a key (RFC 9449): without its proofs they are worth nothing.
    public var isBound: Bool { key != nil }

    /// The thumbprint of the key that the tokens are bound to (RFC 7638), as in an access token's `cnf.jkt`.
    public var keyThumbprint: String? { key?.thumbprint }

    /// Whether the access token has `margin` seconds left.
    public func isValid(at now: Date, margin: TimeInterval = 0) -> Bool {
        expiresAt.map { now.addingTimeInterval(margin) < $0 } ?? true
    }

    /// Tokens of another session are another sign-in's, perhaps another user's. Where there is no session now, they
    /// stand for themselves.
    func belongs(to session: Session?) -> Bool {
        guard let session else { return true }
        return sessionFingerprint == Self.fingerprint(of: session)
    }

    static func fingerprint(of session: Session) -> String {
        session.token.withUnsafeBytes { Base64URL.encode(SHA2.sha256(Array($0))) }
    }

    /// The set as it is kept in a store.
    var stored: Secret {
        // What knows only the first form would send these as bearer tokens.
        var json: JSONObject = JSONObject([.init(name: "v", value: key == nil ? 1 : 2)])
        json["dpop"] = key?.json
        json["access_token"] = .string(accessToken.reveal())
        json["refresh_token"] = refreshToken.map { .string($0.reveal()) }
        json["id_token"] = idToken.map { .string($0.text.reveal()) }
        json["scope"] = .string(scopes.joined(separator: " "))
        json["expires_at"] = expiresAt.map { .integer(Int64($0.timeIntervalSince1970.rounded(.down))) }
        json["obtained_at"] = obtainedAt.map { .integer(Int64($0.timeIntervalSince1970.rounded(.down))) }
        json["session"] = sessionFingerprint.map { .string($0) }
        return Secret(bytes: JSONValue.object(json).serializedBytes())
    }

    init?(stored: Secret) {
        guard let json = try? JSONValue.parse(stored.revealBytes()), let access = json["access_token"]?.string else {
            return nil
        }
        key = json["dpop"].flatMap(KeyBinding.init)
        guard json["v"]?.integer == (key == nil ? 1 : 2), (json["dpop"] == nil) == (key == nil) else { return nil }
        accessToken = Secret(access)
        refreshToken = json["refresh_token"]?.string.map { Secret($0) }
        idToken = json["id_token"]?.string.flatMap { IDToken(fromOwnStore: $0) }
        scopes = (json["scope"]?.string ?? "").split(separator: " ").map(String.init)
        expiresAt = json["expires_at"]?.integer.map { Date(timeIntervalSince1970: Double($0)) }
        obtainedAt = json["obtained_at"]?.integer.map { Date(timeIntervalSince1970: Double($0)) }
        sessionFingerprint = json["session"]?.string
    }

    init(
        _ reply: TokenReply, idToken: IDToken?, requestedScopes: [String], now: Date, replacing old: TokenSet? = nil,
        sessionFingerprint: String?, key: KeyBinding?
    ) {
        self.key = key
        accessToken = reply.accessToken
        refreshToken = reply.refreshToken ?? old?.refreshToken
        self.idToken = idToken ?? old?.idToken
        scopes = reply.scope?.split(separator: " ").map(String.init) ?? old?.scopes ?? requestedScopes
        // Whole seconds, as they are stored.
        let now = Date(timeIntervalSince1970: now.timeIntervalSince1970.rounded(.down))
        expiresAt = reply.expiresIn.map { now.addingTimeInterval($0.rounded(.down)) }
        obtainedAt = now
        self.sessionFingerprint = sessionFingerprint
    }
}

extension TokenSet: CustomStringConvertible {
    /// What there is and until when, nothing of the tokens.
    public var description: String {
        let end = expiresAt.map { "until \(Int64($0.timeIntervalSince1970.rounded(.down)))" } ?? "without end"
        return
            "TokenSet(\(end), \(refreshToken == nil ? "no refresh token" : "refresh token"), \(scopes.count) scopes\(isBound ? ", bound to a key" : ""))"
    }
}

/// A success of the token endpoint (RFC 6749 §5.1).
struct TokenReply {
    let accessToken: Secret
    let refreshToken: Secret?
    let idToken: String?
    let scope: String?
    let expiresIn: TimeInterval?
    private let type: JSONValue?

    /// Reads a reply. Its tokens are not to be used before ``checkType(isBound:)``.
    ///
    /// - Parameter json: the reply's object.
    /// - Throws: ``TokenError``: `malformedReply`.
    init(_ json: JSONObject) throws(TokenError) {
        func token(_ name: String) throws(TokenError) -> String? {
            guard let value = json[name], value != .null else { return nil }
            guard let text = value.string, !text.isEmpty, text.utf8.allSatisfy(\.isASCIIVisible) else {
                throw TokenError(.malformedReply, "The token endpoint's \(name) is not a token.")
            }
            return text
        }
        guard let access = try token("access_token") else {
            throw TokenError(.malformedReply, "The token endpoint gave no access token.")
        }
        type = json["token_type"]
        accessToken = Secret(access)
        refreshToken = try token("refresh_token").map { Secret($0) }
        idToken = try token("id_token")
        scope = json["scope"]?.string
        expiresIn = Self.seconds(json["expires_in"])
    }

    /// Compares the type of the tokens with what was asked for.
    ///
    /// - Parameter isBound: whether a proof was sent: tokens that are not bound to its key are then refused (RFC 9449
    ///   §5).
    /// - Throws: ``TokenError``: `malformedReply`, or `unboundTokens`.
    func checkType(isBound: Bool) throws(TokenError) {
        if isBound {
            guard type?.string?.lowercased() == "dpop" else {
                throw TokenError(
                    .unboundTokens,
                    "The token endpoint gave tokens that are not bound to this app's key (token_type is not DPoP). "
                        + "They are not used.")
            }
        } else if let type, type.string?.lowercased() != "bearer" {
            throw TokenError(.malformedReply, "The token endpoint gave tokens of another type than Bearer.")
        }
    }

    /// How long the access token lives. A value that is none is as good as a missing one: the server enforces it
    /// anyway, and a refresh token that came along must not be lost for it.
    private static func seconds(_ value: JSONValue?) -> TimeInterval? {
        guard let value, let seconds = value.number?.double ?? value.string.flatMap(Double.init), !seconds.isNaN else {
            return nil
        }
        return min(max(seconds, 0), 10 * 365 * 86400)
    }
}
