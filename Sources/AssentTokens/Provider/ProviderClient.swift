import AssentCore
import AssentJOSE
import Foundation
import HTTPTypes
import Logging

/// The authorization server as this client uses it: each method is one exchange, nothing is kept but public facts.
actor ProviderClient {
    private let configuration: TokenConfiguration
    let exchange: ProviderExchange
    private let description: MetadataCache
    private let keys: KeySetCache
    let proofs: ProofMaker
    let client: ClientAssertions

    /// This installation's registration, where the configuration asks for one.
    nonisolated let registration: AppRegistration?
    private let clock: any WallClock
    private let random: any RandomSource
    let logger: Logger

    init(
        _ configuration: TokenConfiguration, transport: any HTTPTransport, storage: TokenStorage, proofs: ProofMaker,
        clock: any WallClock, random: any RandomSource, logger: Logger
    ) {
        self.configuration = configuration
        let exchange = ProviderExchange(transport: transport, limits: configuration.limits)
        let description = MetadataCache(configuration, exchange: exchange, clock: clock)
        self.exchange = exchange
        self.description = description
        keys = KeySetCache(exchange: exchange, clock: clock)
        self.proofs = proofs
        let registration = configuration.registration.map { settings in
            AppRegistration(
                configuration, settings, store: storage,
                wire: RegistrationWire(exchange: exchange, metadata: description, proofs: proofs), random: random,
                logger: logger)
        }
        self.registration = registration
        client = ClientAssertions(configuration, registration: registration, clock: clock, random: random)
        self.clock = clock
        self.random = random
        self.logger = logger
    }

    var now: Date { clock.now }

    var issuer: String { configuration.issuer }

    /// What is as good as any nonce where the server has given none.
    func randomNonce() -> String { random.token() }

    func metadata() async throws -> ProviderMetadata { try await description.metadata() }

    /// Gets tokens with AM's session: authorization request, redirect read but not followed, code, tokens, which are
    /// bound to `key` if there is one. A client whose registration the server has ended registers again, once.
    func authorize(_ session: Session, key: ProofKey?) async throws -> TokenSet {
        let identity = try await client.identity()
        do {
            return try await authorize(session, as: identity, key: key)
        } catch let error as TokenError where error.isAboutClient {
            guard await client.isGone(identity) else { throw error }
            return try await authorize(session, as: try await client.identity(), key: key)
        }
    }

    private func authorize(_ session: Session, as identity: TokenClient, key: ProofKey?) async throws -> TokenSet {
        let metadata = try await metadata()
        let attempt = AuthorizationAttempt(
            configuration, metadata, client: identity, key: key?.binding, random: random)
        let code = try await code(attempt, session, metadata)
        return try await redeem(
            code, attempt, sessionFingerprint: TokenSet.fingerprint(of: session), key: key, metadata)
    }

    /// An authorization request for a browser, whose answer comes to `redirectURI`.
    func attempt(
        redirectURI: String, parameters: [FormItems.Item], key: KeyBinding?
    ) async throws -> AuthorizationAttempt {
        AuthorizationAttempt(
            configuration, try await metadata(), client: try await client.identity(), redirectURI: redirectURI,
            parameters: parameters, key: key, random: random)
    }

    /// Gets tokens with what a browser brought.
    func tokens(for attempt: AuthorizationAttempt, redirect: String, key: ProofKey?) async throws -> TokenSet {
        let code = try attempt.code(fromRedirect: redirect)
        return try await redeem(code, attempt, sessionFingerprint: nil, key: key, try await metadata())
    }

    private func redeem(
        _ code: Secret, _ attempt: AuthorizationAttempt, sessionFingerprint: String?, key: ProofKey?,
        _ metadata: ProviderMetadata
    ) async throws -> TokenSet {
        var form = FormItems()
        form.append("grant_type", "authorization_code")
        form.append("code", code.reveal())
        form.append("redirect_uri", attempt.redirectURI)
        form.append("client_id", attempt.client.id)
        form.append("code_verifier", attempt.verifier.reveal())
        let reply = try await token(form, as: attempt.client, key, metadata, isNewGrant: true)
        let idToken: IDToken?
        do {
            idToken = try await self.idToken(of: reply, attempt, metadata)
        } catch {
            // Nobody will ever use the tokens that came with it.
            await discard(refreshToken: reply.refreshToken, accessToken: reply.accessToken)
            throw error
        }
        return TokenSet(
            reply, idToken: idToken, requestedScopes: configuration.scopes, now: clock.now,
            sessionFingerprint: sessionFingerprint, key: key?.binding)
    }

    /// Who has signed in, where `openid` was asked for.
    private func idToken(
        of reply: TokenReply, _ attempt: AuthorizationAttempt, _ metadata: ProviderMetadata
    ) async throws -> IDToken? {
        guard configuration.scopes.contains("openid") else { return nil }
        guard let text = reply.idToken else {
            throw TokenError(.invalidIDToken, "The provider sent no ID token.")
        }
        return try await verified(
            text, reply.accessToken, of: attempt.client, nonce: attempt.nonce, maxAge: attempt.maxAge, metadata)
    }

    private func code(
        _ attempt: AuthorizationAttempt, _ session: Session, _ metadata: ProviderMetadata
    ) async throws -> Secret {
        // The session is the user: it goes to the configured server and nowhere else, whatever the metadata says.
        guard let origin = try? Origin(metadata.authorizationEndpoint), origin == (try? Origin(configuration.issuer))
        else {
            throw TokenError(
                .unusableEndpoint, "The provider's authorization_endpoint is on another origin than the issuer.")
        }
        var fields = HTTPFields()
        fields[configuration.sessionField] = session.token.reveal()
        fields[.acceptAPIVersion] = "resource=2.1,protocol=1.0"
        let reply = try await get(attempt.url, fields, session)
        switch reply.status {
        case 302, 303:
            guard let location = reply.fields[.location] else {
                throw TokenError(
                    .malformedReply, "The authorization endpoint redirects to nowhere.", status: reply.status)
            }
            do throws(TokenError) {
                return try attempt.code(fromRedirect: location)
            } catch {
                // Without a session that it accepts, AM leads to its own login page, and others say login_required.
                let isLoginPage = error.code == .unexpectedRedirect && (try? Origin(location)) == origin
                if isLoginPage || error.oauthError.map(Self.sessionErrors.contains) == true {
                    // A page for a sign-in knows this request, to which it comes back; one about maintenance does not.
                    throw TokenError.signInNeeded(
                        .sessionRefused, status: reply.status,
                        isWithoutReason: isLoginPage && !attempt.isNamed(in: location))
                }
                throw error
            }
        case 401 where reply.oauthError.map(Self.sessionErrors.contains) ?? true:
            throw TokenError.signInNeeded(
                .sessionRefused, status: reply.status, isWithoutReason: reply.oauthError == nil)
        default:
            let isAboutClient = reply.oauthError.map(TokenError.clientErrors.contains) == true
            throw TokenError(
                .authorizationRefused,
                isAboutClient
                    ? "The provider does not know the client \(attempt.client.id), or does not let it do this."
                    : "The authorization endpoint does not redirect.", status: reply.status,
                oauthError: reply.oauthError)
        }
    }

    private static let sessionErrors: Set = ["login_required", "invalid_token"]

    /// Gets the successor of `old`, whose refresh token is kept when the server gives no other. `key` is the one that
    /// `old` is bound to.
    func refresh(
        _ old: TokenSet, _ refreshToken: Secret, attemptID: String?, key: ProofKey?
    ) async throws -> TokenSet {
        let metadata = try await metadata()
        let identity = try await client.renewingIdentity()
        var form = FormItems()
        form.append("grant_type", "refresh_token")
        form.append("refresh_token", refreshToken.reveal())
        form.append("client_id", identity.id)
        if let attemptID { form.append("attempt_id", attemptID) }
        let reply = try await token(form, as: identity, key, metadata)
        var idToken: IDToken?
        if let text = reply.idToken, let oldID = old.idToken {
            do {
                let new = try await verified(
                    text, reply.accessToken, of: identity, nonce: oldID.claims["nonce"]?.string, isRefresh: true,
                    metadata)
                guard new.subject.utf8.elementsEqual(oldID.subject.utf8) else {
                    throw TokenError(.invalidIDToken, "The ID token of the refresh is another user's.")
                }
                idToken = new
            } catch let error as TokenError where error.code == .invalidIDToken {
                throw error
            } catch {
                // The keys cannot be had now, whatever has failed: a layer of the app's own throws what it likes. The
                // rotated refresh token must not be lost for that; the old ID token stays.
            }
        }
        return TokenSet(
            reply, idToken: idToken, requestedScopes: configuration.scopes, now: clock.now, replacing: old,
            sessionFingerprint: old.sessionFingerprint, key: old.key)
    }

    func token(
        _ form: FormItems, as identity: TokenClient, _ key: ProofKey?, _ metadata: ProviderMetadata,
        isNewGrant: Bool = false
    ) async throws -> TokenReply {
        let reply = try await post(form, as: identity, to: metadata.tokenEndpoint, key)
        guard reply.status == 200 else {
            if reply.body.isEmpty {
                await client.forget()
                throw TokenError.refusedWithoutReason(status: reply.status)
            }
            throw await refused(.tokenRefused, "The token endpoint gave no tokens.", by: reply, of: identity)
        }
        guard let object = reply.object else {
            throw TokenError(.malformedReply, "The token endpoint's reply is not a JSON object.", status: reply.status)
        }
        if object["access_token"] == nil, reply.oauthError != nil {
            throw await refused(
                .tokenRefused, "The token endpoint gave an error with status 200.", by: reply, of: identity)
        }
        return try await accepted(try TokenReply(object), isBound: key != nil, isNewGrant: isNewGrant)
    }

    private func verified(
        _ text: String, _ accessToken: Secret, of identity: TokenClient, nonce: String?,
        maxAge: TimeInterval? = nil, isRefresh: Bool = false, _ metadata: ProviderMetadata
    ) async throws -> IDToken {
        guard let url = metadata.keySetURI else { throw ProviderMetadata.missing("jwks_uri") }
        let clock = await client.correctedClock
        let expected = UnverifiedIDToken.Expectation(
            issuer: configuration.issuer, clientID: identity.id, nonce: nonce, isRefresh: isRefresh,
            trustedAudiences: configuration.trustedAudiences, maxAge: maxAge,
            accessToken: accessToken, clock: clock, leeway: configuration.leeway)
        do {
            let token = try UnverifiedIDToken(text)
            let signed = try await keys.verify(token.jws, keysAt: url, algorithms: configuration.idTokenAlgorithms)
            return try token.verified(signed, expected)
        } catch let error as JOSEError {
            throw TokenError(.invalidIDToken, "The ID token is not valid (\(error.code)). \(error.detail)")
        }
    }

    func userInfo(_ tokens: TokenSet) async throws -> JSONObject {
        guard let url = try await metadata().userInfoEndpoint else {
            throw ProviderMetadata.missing("userinfo_endpoint")
        }
        let reply = try await get(url, tokens)
        guard reply.status == 200, let object = reply.object else {
            throw TokenError.userInfoRefused(reply.response, oauthError: reply.oauthError)
        }
        if let subject = tokens.idToken?.subject {
            guard let other = object["sub"]?.string, other.utf8.elementsEqual(subject.utf8) else {
                throw TokenError(.userInfoRefused, "The userinfo endpoint told of another user.", status: reply.status)
            }
        }
        return object
    }
}
