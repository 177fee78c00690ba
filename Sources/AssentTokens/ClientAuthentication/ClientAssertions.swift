import AssentCore
import AssentJOSE
import HTTPTypes

/// Knows which client this is, and makes the assertions by which it authenticates (RFC 7523 §3), each for one sending:
/// a server takes each once, so that a request that goes out again has another.
actor ClientAssertions {
    /// How many seconds an assertion is good: long enough for a slow network and for clocks that differ a little, short
    /// enough that one that lies about somewhere is worth nothing, and that servers remember it for a minute only.
    static let lifetime: Int64 = 60

    /// The value of `client_assertion_type` (RFC 7523 §2.2).
    static let type = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

    private let configured: TokenClient
    private let registration: AppRegistration?
    private let issuer: String
    private let clock: any WallClock
    private let random: any RandomSource
    /// Seconds that the provider's clock is ahead of this machine's, as far as that has mattered.
    private(set) var ahead: Int64 = 0
    /// The last correction with which the provider has accepted an assertion. ``ahead`` differs while one is tried.
    private var proven: Int64 = 0
    private var found: (name: String, key: ClientKey)?

    init(
        _ configuration: TokenConfiguration, registration: AppRegistration?, clock: any WallClock,
        random: any RandomSource
    ) {
        configured = TokenClient(id: configuration.clientID, key: configuration.clientAuthentication.key)
        self.registration = registration
        issuer = configuration.issuer
        self.clock = clock
        self.random = random
    }

    /// Which client asks for something new. An installation that is to register does so now, unless it has.
    ///
    /// - Throws: ``TokenError``, as ``AppRegistration/register()``.
    func identity() async throws -> TokenClient {
        guard let registration else { return configured }
        guard configured.key == nil else {
            throw TokenError(
                .invalidConfiguration, "The configuration has clientAuthentication and registration.",
                suggestion: "Leave one of them out: an installation that registers authenticates with its own key.")
        }
        return try await registration.identity()
    }

    /// Which client has got what is stored. Nothing is registered for that.
    ///
    /// - Throws: ``TokenError`` with code `notRegistered` when the registration is not there any more.
    func knownIdentity() async throws -> TokenClient {
        guard let registration else { return configured }
        return try await registration.knownIdentity()
    }

    /// Which client renews what is stored. Nothing is registered for that, and the server hears of a new version.
    ///
    /// - Throws: ``TokenError`` with code `notRegistered` when the registration is not there any more.
    func renewingIdentity() async throws -> TokenClient {
        guard let registration else { return configured }
        return try await registration.renewingIdentity()
    }

    /// Makes sure that the key is there, before somebody is asked to sign in for nothing; and that the server still
    /// knows a client that has registered, since a browser would show its refusal to the user and not to us.
    func check() async throws {
        var identity = try await identity()
        if let registration, await registration.isGone(identity.id) { identity = try await self.identity() }
        if let place = identity.key { _ = try await key(at: place) }
    }

    /// Whether a client that was refused may be another one at the next try, since the server has ended its
    /// registration.
    func isGone(_ identity: TokenClient) async -> Bool {
        guard let registration, identity.isRegistered else { return false }
        return await registration.isGone(identity.id)
    }

    /// A form that says who sends it, for one sending. `client_id` stays in it: it must agree (RFC 7521 §4.2), and some
    /// servers find the client by it.
    func authenticated(_ form: FormItems, as identity: TokenClient) async throws -> FormItems {
        guard let place = identity.key else { return form }
        var form = form
        form.append("client_assertion_type", Self.type)
        form.append("client_assertion", try await assertion(of: identity.id, at: place).reveal())
        return form
    }

    /// Looks for the key again at the next request: another process may have replaced it.
    func forget() { found = nil }

    /// What it means that the server answered with this `error`, and what to do; `nil` when it is not about the
    /// assertion. The next request looks for the key again.
    func refusal(_ error: String?, of identity: TokenClient) -> (detail: String, suggestion: String)? {
        guard let place = identity.key, error == "invalid_client" else { return nil }
        let kid = found.map { " (kid \($0.key.publicKey.thumbprint))" } ?? ""
        found = nil
        let detail = "The provider did not accept the assertion by which the client \(identity.id) authenticates."
        guard !identity.isRegistered else {
            return (
                "\(detail) The provider may have ended the registration of this installation.",
                "Sign in, which registers this installation again if that is so, and check this machine's clock."
            )
        }
        return (
            detail,
            "Register the public half of the client key \(ClientKey.shown(place.name))\(kid) at the provider, with "
                + "private_key_jwt, and check this machine's clock."
        )
    }

    /// Seconds by this machine's clock, as the provider has corrected it.
    var epochSeconds: Int64 { clock.epochSeconds + ahead }

    /// The same clock, for what the provider says of times.
    var correctedClock: any WallClock {
        guard ahead != 0 else { return clock }
        return CorrectedClock(base: clock, ahead: ahead)
    }

    /// Takes over the time of a reply of the provider, which has refused what was signed by a clock that was corrected
    /// by `used` seconds. Another request may have corrected it meanwhile.
    ///
    /// - Returns: by how many seconds the clock is corrected now, for ``settleClock(_:isTaken:)``; `nil` when that
    ///   changes nothing: a difference of a few seconds is not worth sending anything again.
    func correctClock(by fields: HTTPFields, since used: Int64) -> Int64? {
        guard let date = fields[.date].flatMap(HTTPDate.init) else { return nil }
        let now = date.seconds - clock.epochSeconds
        guard abs(now) <= Self.furthest, abs(now - used) > Self.tolerance else { return nil }
        if abs(now - ahead) > Self.tolerance { ahead = now }
        return ahead
    }

    /// Keeps a correction that was tried, if the provider has accepted what was signed with it. Otherwise it is taken
    /// back, since a proxy may have written the field: to the last correction that was accepted, and not to the one
    /// before, which another request may have tried in vain.
    func settleClock(_ tried: Int64, isTaken: Bool) {
        guard ahead == tried else { return }
        if isTaken { proven = tried } else { ahead = proven }
    }

    /// Seconds that clocks may differ before anything is sent again for it.
    private static let tolerance: Int64 = 5

    /// The furthest correction, in seconds. Nobody has signed the field: someone who writes it, and keeps the assertion
    /// that comes back, has one that becomes valid when that time comes.
    private static let furthest: Int64 = 86_400

    private func assertion(of clientID: String, at place: ClientKey.Place) async throws -> Secret {
        let key = try await key(at: place)
        var claims = JWTClaims()
        claims.iss = clientID
        claims.sub = clientID
        // The issuer as a string, which every profile takes (FAPI 2.0 §5.3.3.1), and never an address that the
        // provider's description of itself names: so no assertion is good at another server.
        claims["aud"] = .string(issuer)
        claims.jti = random.token()
        let now = epochSeconds
        claims["iat"] = .integer(now)
        claims["exp"] = .integer(now + Self.lifetime)
        let header = JSONObject([
            .init(name: "typ", value: "JWT"), .init(name: "kid", value: .string(key.publicKey.thumbprint)),
        ])
        do {
            return Secret(try await JWS.sign(claims.payload, header: header, with: key.key))
        } catch let error as KeyProviderError {
            found = nil
            throw TokenError(clientKey: place.name, error)
        } catch let error as JOSEError {
            found = nil
            throw TokenError(
                .clientKeyUnavailable,
                "The client key \(ClientKey.shown(place.name)) cannot be used: \(error.explanation)")
        }
    }

    /// The key of a client, looked for once.
    func key(at place: ClientKey.Place) async throws -> ClientKey {
        if let found, found.name == place.name { return found.key }
        let key = try await ClientKey.find(named: place.name, at: place.provider)
        found = (place.name, key)
        return key
    }
}
