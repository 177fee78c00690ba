public import AssentCore
public import Foundation

/// What a JWT must say to be accepted (RFC 7519 §7.2, RFC 8725).
///
/// Each failure throws a ``JOSEError`` with its own code. A claim that is present but of the wrong type is always
/// refused.
public struct JWTValidation: Sendable {
    /// The only accepted `iss`; `nil` accepts any and none.
    public var issuer: String?

    /// `aud` must name one of these; `nil` accepts any and none.
    public var audiences: Set<String>?

    /// Where the time comes from.
    public var clock: any WallClock

    /// How far the issuer's clock may differ from ours, in seconds.
    public var leeway: TimeInterval

    /// The only accepted `typ`, as a media type with or without `application/` (RFC 8725 §3.11); `nil` accepts any and
    /// none.
    public var requiredType: String?

    /// Claims that must be there. `iss` and `aud` are as well when they are checked.
    public var requiredClaims: Set<String>

    /// How long ago it may have been issued, in seconds, whatever `exp` says; requires `iat`. `nil` for any time.
    public var maximumAge: TimeInterval?

    /// Rules for tokens of one issuer for one audience.
    ///
    /// - Parameters:
    ///   - issuer: the only accepted `iss`; `nil` accepts any.
    ///   - audience: what `aud` must name; `nil` accepts any.
    ///   - clock: where the time comes from.
    ///   - leeway: seconds that clocks may differ.
    ///   - requiredType: the only accepted `typ`; `nil` accepts any.
    ///   - requiredClaims: claims that must be there.
    ///   - maximumAge: seconds since `iat`; `nil` for any.
    public init(
        issuer: String?, audience: String?, clock: any WallClock, leeway: TimeInterval = 30,
        requiredType: String? = nil, requiredClaims: Set<String> = ["exp"], maximumAge: TimeInterval? = nil
    ) {
        self.init(
            issuer: issuer, audiences: audience.map { [$0] }, clock: clock, leeway: leeway,
            requiredType: requiredType, requiredClaims: requiredClaims, maximumAge: maximumAge)
    }

    /// Rules for tokens that may name any one of several audiences.
    ///
    /// - Parameters:
    ///   - issuer: the only accepted `iss`; `nil` accepts any.
    ///   - audiences: `aud` must name one of them; `nil` accepts any, an empty set none.
    ///   - clock: where the time comes from.
    ///   - leeway: seconds that clocks may differ.
    ///   - requiredType: the only accepted `typ`; `nil` accepts any.
    ///   - requiredClaims: claims that must be there.
    ///   - maximumAge: seconds since `iat`; `nil` for any.
    public init(
        issuer: String?, audiences: Set<String>?, clock: any WallClock, leeway: TimeInterval = 30,
        requiredType: String? = nil, requiredClaims: Set<String> = ["exp"], maximumAge: TimeInterval? = nil
    ) {
        self.issuer = issuer
        self.audiences = audiences
        self.clock = clock
        self.leeway = leeway
        self.requiredType = requiredType
        self.requiredClaims = requiredClaims
        self.maximumAge = maximumAge
    }

    /// The claims of `message`, when all rules hold.
    ///
    /// - Throws: ``JOSEError`` with `malformed`, `wrongType`, `missingClaim`, `malformedClaim`, `wrongIssuer`,
    ///   `wrongAudience`, `expired`, `notYetValid`, `issuedInFuture` or `tooOld`.
    @discardableResult
    public func validate(_ message: VerifiedJWS) throws(JOSEError) -> JWTClaims {
        if let requiredType {
            guard let type = message.type, CompactHeader.same(type, as: requiredType) else {
                throw JOSEError(.wrongType, "The header's typ is not \(requiredType).")
            }
        }
        let claims = try JWTClaims(payload: message.payload)
        try checkForm(claims)
        try checkParties(claims)
        try checkTimes(claims)
        return claims
    }

    private func checkForm(_ claims: JWTClaims) throws(JOSEError) {
        for name in requiredClaims.sorted() where claims[name] == nil { throw JOSEError(.missingClaim(name)) }
        for name in ["iss", "sub", "jti"] {
            if let value = claims[name], value.string == nil { throw JOSEError(.malformedClaim(name)) }
        }
        for name in ["exp", "nbf", "iat"] where claims[name] != nil && claims.date(name) == nil {
            throw JOSEError(.malformedClaim(name))
        }
        if let aud = claims["aud"], aud.string == nil, aud.strings == nil { throw JOSEError(.malformedClaim("aud")) }
    }

    private func checkParties(_ claims: JWTClaims) throws(JOSEError) {
        if let issuer {
            guard let iss = claims.iss else { throw JOSEError(.missingClaim("iss")) }
            guard iss.utf8.elementsEqual(issuer.utf8) else { throw JOSEError(.wrongIssuer) }
        }
        if let audiences {
            guard claims["aud"] != nil else { throw JOSEError(.missingClaim("aud")) }
            let accepted = audiences.map { Array($0.utf8) }
            guard claims.aud.contains(where: { accepted.contains(Array($0.utf8)) }) else {
                throw JOSEError(.wrongAudience)
            }
        }
    }

    private func checkTimes(_ claims: JWTClaims) throws(JOSEError) {
        let now = clock.now
        let leeway = max(0, leeway)
        if let exp = claims.exp, now >= exp + leeway { throw JOSEError(.expired) }
        if let nbf = claims.nbf, now < nbf - leeway { throw JOSEError(.notYetValid) }
        if let iat = claims.iat, iat > now + leeway { throw JOSEError(.issuedInFuture) }
        if let maximumAge {
            guard let iat = claims.iat else { throw JOSEError(.missingClaim("iat")) }
            if now - maximumAge > iat + leeway { throw JOSEError(.tooOld) }
        }
    }
}
