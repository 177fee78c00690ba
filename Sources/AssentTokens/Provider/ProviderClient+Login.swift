package import AssentCore
import Foundation
import HTTPTypes

/// What the assertion of one login must say, which a container signs (``/AssentSigning``).
package struct LoginFacts: Sendable {
    /// The issuer of this provider.
    package let audience: String
    /// The thumbprint of the installation's key.
    package let keyThumbprint: String
    /// The nonce of the proof beside it.
    package let nonce: String
    /// Seconds by the clock that the provider's last reply has corrected.
    package let time: Int64
}

/// Signs a login. Each sending has an assertion of its own.
package typealias LoginSigner = @Sendable (LoginFacts) async throws -> Secret

/// What a login gave.
struct Login: Sendable {
    let tokens: TokenSet
    /// The session's token, of a login with a PIN.
    let session: Secret?
    let key: ProofKey
}

extension ProviderClient {
    private static let grantType = "urn:ietf:params:oauth:grant-type:jwt-bearer"

    /// Signs a remembered user in (RFC 7523 §2.1). A refusal that a wrong clock may have caused corrects the clock by
    /// the time of the provider's reply, and the request is sent once more.
    ///
    /// - Throws: ``TokenError``: `notRegistered`, `scopeRefused`, `tokenRefused` with ``TokenError/loginRefusal``,
    ///   `transport`; what `sign` throws.
    func login(scopes: [String]?, sign: LoginSigner) async throws -> Login {
        let identity = try await client.knownIdentity()
        guard let place = identity.key else {
            throw TokenError(
                .invalidConfiguration, "A client without a key cannot sign remembered users in.",
                suggestion: "Set registration in the configuration.")
        }
        let key = ProofKey(client: try await client.key(at: place), name: place.name)
        var form = FormItems()
        form.append("grant_type", Self.grantType)
        form.append("client_id", identity.id)
        if let scopes, !scopes.isEmpty { form.append("scope", scopes.joined(separator: " ")) }
        let url = try await metadata().tokenEndpoint
        do {
            let used = await client.ahead
            var reply = try await post(login: form, as: identity, to: url, key, sign)
            if reply.isRefusalByClock, let tried = await client.correctClock(by: reply.fields, since: used) {
                do {
                    reply = try await post(login: form, as: identity, to: url, key, sign)
                } catch {
                    await client.settleClock(tried, isTaken: false)
                    throw error
                }
                await client.settleClock(tried, isTaken: !reply.isRefusalByClock && reply.isVerdict)
            }
            return try await read(reply, scopes: scopes ?? [], as: identity, key)
        } catch let error as TokenError where error.isScopeRefusal {
            throw MemoryTokenLife.scopeRefused
        } catch let error as TokenError where error.oauthError == "invalid_client" {
            guard await client.isGone(identity) else { throw error }
            throw TokenError(.notRegistered, "The server has ended the registration of this installation.")
        }
    }

    private func read(
        _ reply: ProviderExchange.Reply, scopes: [String], as identity: TokenClient, _ key: ProofKey
    ) async throws -> Login {
        guard reply.status == 200, let object = reply.object else {
            let words = reply.loginRefusal?.words
            var error = await refused(
                .tokenRefused, words?.detail ?? "The server does not sign this user in.", suggestion: words?.suggestion,
                by: reply, of: identity)
            error.loginRefusal = reply.loginRefusal
            throw error
        }
        let read = try await accepted(try TokenReply(object), isBound: true, isNewGrant: true)
        let session = object["assent_session"]?.string.flatMap { text in
            (1...4096).contains(text.utf8.count) && text.utf8.allSatisfy(\.isASCIIVisible) ? Secret(text) : nil
        }
        let fingerprint = session.map { TokenSet.fingerprint(of: Session(token: $0)) }
        let tokens = TokenSet(
            read, idToken: nil, requestedScopes: scopes, now: now, sessionFingerprint: fingerprint, key: key.binding)
        return Login(tokens: tokens, session: session, key: key)
    }

    private func post(
        login form: FormItems, as identity: TokenClient, to url: String, _ key: ProofKey, _ sign: LoginSigner
    ) async throws -> ProviderExchange.Reply {
        let target = ProofMaker.Target(method: .post, url: url, role: .authorizationServer)
        return try await proofs.exchange(
            target, key: key,
            sendWithNonce: { proof, nonce in
                var form = form
                // Without a nonce the server only gives one: what is signed then is valid nowhere.
                let facts = LoginFacts(
                    audience: issuer, keyThumbprint: key.binding.thumbprint, nonce: nonce ?? randomNonce(),
                    time: await client.epochSeconds)
                form.append("assertion", try await sign(facts).reveal())
                let authenticated = try await client.authenticated(form, as: identity)
                return try await exchange.post(url, form: authenticated, fields: [.dpop: proof])
            },
            read: { reply in
                (reply.fields, [400, 401].contains(reply.status) && reply.oauthError == "use_dpop_nonce")
            })
    }

    /// An implicit login, whose token is in memory alone.
    func implicitLogin(
        _ ask: MemoryTokenLife.Ask, sign: LoginSigner
    ) async throws -> (grant: MemoryTokenLife.Grant, scopes: Set<String>) {
        let login = try await login(scopes: ask.scopes.sorted(), sign: sign)
        let set = login.tokens
        let token = AccessToken(
            set.accessToken, binding: .init(key: login.key, proofs: proofs), owner: ask.user.map(TokenOwner.remembered))
        let grant = MemoryTokenLife.Grant(
            token: token, scopes: ask.scopes, expiresAt: set.expiresAt, obtainedAt: set.obtainedAt ?? now,
            user: ask.user)
        return (grant, Set(set.scopes))
    }
}

extension ProviderExchange.Reply {
    /// Why the server does not sign a remembered user in, where it says so (`assent_error`).
    fileprivate var loginRefusal: LoginRefusalHint? { object?["assent_error"]?.string.flatMap(LoginRefusalHint.init) }

    /// Whether a wrong clock may be the reason: then nothing has happened, and nothing more exact was said.
    fileprivate var isRefusalByClock: Bool {
        [400, 401].contains(status) && ["invalid_grant", "invalid_client"].contains(oauthError)
            && object?["assent_error"] == nil
    }
}

/// Why the server does not sign a remembered user in. Nobody has signed it, so it is a hint.
package enum LoginRefusalHint: String, Sendable, Hashable, CaseIterable {
    /// The PIN is locked.
    case locked
    /// What the PIN opens is destroyed.
    case shredded
    /// The PIN must be typed again: its evaluation was used, or is too old.
    case unlockRequired = "unlock_required"
    /// The container has ended.
    case containerEnded = "container_ended"
    /// The container's keys have expired.
    case expired
    /// The PIN must be changed first.
    case passwordExpired = "password_expired"
    /// The app has no implicit logins.
    case implicitDisabled = "implicit_disabled"
    /// The user has not agreed to what an implicit login asks for.
    case consentRequired = "consent_required"

    /// What it means for the app, and what helps.
    var words: (detail: String, suggestion: String) {
        let enrolAgain = "Let the user sign in, and enrol this installation again."
        return switch self {
        case .locked:
            ("The user's PIN is locked until the user authenticates in another way.", "Let the user sign in.")
        case .shredded: ("The server has destroyed what opened the user's keys here.", enrolAgain)
        case .unlockRequired: ("The server asks for the user's PIN.", "Let the user type the PIN.")
        case .containerEnded: ("The server takes no login by the user's keys here.", enrolAgain)
        case .expired: ("The keys by which this user is remembered here have expired.", enrolAgain)
        case .passwordExpired: ("The user's PIN is too old.", "Let the user choose another PIN.")
        case .implicitDisabled:
            ("The server does not accept users here who are only remembered.", "Let the user type the PIN, or sign in.")
        case .consentRequired:
            (
                "The user has not agreed to what the app asks for without a sign-in.",
                "Let the user type the PIN, or sign in and agree, or ask for fewer scopes."
            )
        }
    }
}
