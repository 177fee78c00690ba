public import AssentCore
public import AssentJOSE
import Foundation

/// An ID token that was read but not checked: nothing in it can be trusted.
struct UnverifiedIDToken {
    /// What must hold besides the signature.
    struct Expectation {
        let issuer: String
        let clientID: String
        /// What must be repeated; `nil` when nothing was asked to be.
        let nonce: String?
        /// Whether it is that of a refresh (OpenID Connect Core §12.2): it may have no nonce, and its times are not
        /// judged.
        let isRefresh: Bool
        /// Other audiences that the token may name.
        let trustedAudiences: Set<String>
        /// How many seconds ago the user may have signed in; `nil` when it was not asked for (`max_age`).
        let maxAge: TimeInterval?
        let accessToken: Secret
        let clock: any WallClock
        let leeway: Double
    }

    let text: String
    let jws: UnverifiedJWS

    init(_ text: String) throws(JOSEError) {
        self.text = text
        jws = try UnverifiedJWS.parse(text)
    }

    /// Checks the claims of a token whose signature holds (OpenID Connect Core §3.1.3.7).
    func verified(_ signed: VerifiedJWS, _ expected: Expectation) throws -> IDToken {
        // A clock that was set wrong since the sign-in must not lose the successor of a refresh token, which the server
        // gives once. What came is the answer to this very request, so no older token can stand in its place.
        let leeway = expected.isRefresh ? .infinity : expected.leeway
        let rules = JWTValidation(
            issuer: expected.issuer, audience: expected.clientID, clock: expected.clock, leeway: leeway,
            requiredClaims: ["exp", "iat", "sub"])
        let claims = try rules.validate(signed)
        // An access token (at+jwt, RFC 9068) or a logout token may be signed with the same keys for the same audience.
        if let type = signed.type, type.lowercased() != "jwt" {
            throw JOSEError(.wrongType, "typ says that it is not an ID token")
        }
        guard claims.sub?.isEmpty == false else { throw JOSEError(.malformedClaim("sub")) }
        let known = expected.trustedAudiences.union([expected.clientID]).map { Array($0.utf8) }
        guard claims.aud.allSatisfy({ known.contains(Array($0.utf8)) }) else {
            throw JOSEError(.wrongAudience, "aud names somebody who is not trusted")
        }
        try Self.checkAge(claims, expected)
        let azp = claims["azp"]
        guard azp.map({ $0.string?.utf8.elementsEqual(expected.clientID.utf8) == true }) ?? (claims.aud.count == 1)
        else { throw JOSEError(.wrongAudience, "azp is another client, or missing beside several audiences") }
        switch claims["nonce"] {
        case nil:
            guard expected.nonce == nil || expected.isRefresh else { throw JOSEError(.missingClaim("nonce")) }
        case let nonce?:
            guard let nonce = nonce.string else { throw JOSEError(.malformedClaim("nonce")) }
            if let own = expected.nonce {
                guard ConstantTime.equal(nonce, own) else { throw JOSEError(.wrongNonce) }
            }
        }
        if let hash = claims["at_hash"] {
            let digest = Self.digest(signed.algorithm, expected.accessToken.revealBytes())
            let half = Base64URL.encode(digest.prefix(digest.count / 2))
            guard let hash = hash.string, ConstantTime.equal(hash, half) else {
                throw JOSEError(.wrongAccessToken, "at_hash is another access token's")
            }
        }
        return IDToken(text: Secret(text), claims: claims)
    }

    /// Whether the user signed in as recently as was asked for (rule 13).
    private static func checkAge(_ claims: JWTClaims, _ expected: Expectation) throws(JOSEError) {
        guard let maxAge = expected.maxAge, !expected.isRefresh else { return }
        guard claims["auth_time"] != nil else { throw JOSEError(.missingClaim("auth_time")) }
        guard let time = claims.date("auth_time") else { throw JOSEError(.malformedClaim("auth_time")) }
        guard expected.clock.now.timeIntervalSince(time) <= maxAge + expected.leeway else { throw JOSEError(.tooOld) }
    }

    private static func digest(_ algorithm: SignatureAlgorithm, _ bytes: [UInt8]) -> [UInt8] {
        switch algorithm {
        case .es384: SHA2.sha384(bytes)
        case .es512, .edDSA: SHA2.sha512(bytes)
        default: SHA2.sha256(bytes)
        }
    }
}

/// An ID token whose signature and claims were checked.
public struct IDToken: Sendable, Equatable {
    /// The token itself, as the server sent it.
    public let text: Secret

    /// The claims.
    public let claims: JWTClaims

    /// Who signed in (`sub`).
    public var subject: String { claims.sub ?? "" }

    init(text: Secret, claims: JWTClaims) {
        self.text = text
        self.claims = claims
    }

    /// A token that was checked before it was put into our own sealed store.
    init?(fromOwnStore text: String) {
        guard let jws = try? UnverifiedJWS.parse(text), let claims = try? JWTClaims(payload: jws.payload) else {
            return nil
        }
        self.init(text: Secret(text), claims: claims)
    }
}

extension IDToken: CustomStringConvertible, CustomReflectable {
    /// That it is one, nothing of it: claims tell about people.
    public var description: String { "IDToken" }

    /// A mirror without children.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
