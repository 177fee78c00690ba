public import AssentCore
import HTTPTypes

/// Gives calls to protected resources the access token of a source, the user's session, or both, and renews a token
/// that a resource refuses.
///
/// ```swift
/// let resources = AuthenticatingTransport(
///     tokens, resources: [try Origin("https://api.bank.example"): .accessToken], over: transport)
/// let reply = try await resources.send(try HTTPCall(.get, url: "https://api.bank.example/accounts"))
/// ```
///
/// Only the origins that it was given get a credential. The calls by which tokens are renewed must not pass it: give
/// the ``TokenManager`` the transport below.
///
/// An access token that was refused with status 401 is renewed, and the call is sent once more when that cannot do
/// harm: its content can be read again, and the call is safe (GET, HEAD …) or the resource said with
/// `error="invalid_token"` that it refused the token and did nothing (RFC 6750 §3.1). It is not sent again when the
/// reply asks for the user's approval, when the call says that it ``/AssentCore/HTTPCall/isSentOnce``, or when somebody
/// else has signed in meanwhile: what was asked for one user is not done for another. For the same reason a call is not
/// sent at all, or not once more, when somebody signs out, or in, while it waits for its token, its session, its proof
/// or the proof's nonce: `sessionChanged`.
///
/// A token that is bound to a key (RFC 9449) goes out with the scheme `DPoP` and a proof for this one sending: for the
/// method, and for the URL as the call has it here; a layer below must not change them. A resource that wants a nonce
/// answers 401 with `error="use_dpop_nonce"` and gives one. The call is then sent once more with a new proof, whatever
/// its method and also when it ``/AssentCore/HTTPCall/isSentOnce``: the proof is verified before anything else is
/// looked at, so nothing has happened and no approval was used. Only content that cannot be read again prevents it.
/// No layer below repeats a call with its proof. Where a kept connection turns out to be stale, a safe call is sent
/// once more from here, with a new proof; of any other the error says that it may have had an effect.
///
/// The session is the user's, so it goes with the user's source alone: of an origin that gets both, another source's
/// calls carry the token. A call of the installation to an origin that gets the session alone is refused, and not sent
/// without.
///
/// Where a resource gets the session alone and answers 401, the server is asked whether it still accepts the session.
/// If it does not, the session is removed, and the error is `signInNeeded`.
public struct AuthenticatingTransport: HTTPTransport {
    private let source: any AccessTokenSource
    private let access: @Sendable (Origin) -> ResourceAccess?
    private let transport: any HTTPTransport

    /// Credentials of `source` for `resources` and for nobody else.
    ///
    /// - Parameters:
    ///   - source: has the tokens, and the session if it is the user's.
    ///   - resources: what each origin gets.
    ///   - transport: carries the calls.
    public init(
        _ source: any AccessTokenSource, resources: [Origin: ResourceAccess], over transport: any HTTPTransport
    ) {
        self.init(source, access: { resources[$0] }, over: transport)
    }

    /// The same for resources that change while the program runs.
    package init(
        _ source: any AccessTokenSource, access: @escaping @Sendable (Origin) -> ResourceAccess?,
        over transport: any HTTPTransport
    ) {
        self.source = source
        self.access = access
        self.transport = transport
    }

    /// What a reply with status 401 says about the access token.
    private enum Refusal {
        /// Nothing: the user is wanted.
        case advice
        /// The token was refused, and the resource did nothing.
        case invalidToken
        /// The proof was refused: another token would not help.
        case proof
        /// It does not say why.
        case other
    }

    /// A call with its credentials. `Authorization` of a token that is bound to a key is added with each proof.
    private struct Outgoing {
        var call: HTTPCall
        /// Who was signed in when its credentials began to be read.
        let signIn: SignInMark?
        var token: Secret?
        /// Whose the token is.
        var owner: TokenOwner?
        /// The key of the token, or of the session that goes without a token.
        var binding: AccessToken.Binding?
        var session: Session?

        /// Whether the token, if there is one, was got with the session beside it.
        var isOfOneSignIn: Bool {
            guard let owner, let session else { return true }
            return owner.has(session)
        }

        /// Whether another token is not that of somebody else.
        func isOfSameUser(as other: Outgoing) -> Bool {
            guard let owner, let otherOwner = other.owner else { return true }
            return owner.isSame(as: otherOwner)
        }
    }

    /// Adds `Authorization`, the session's cookie and its header field, as the origin's ``ResourceAccess`` says. An
    /// `Authorization` that the call brings itself is left alone, and a `DPoP` beside it; a `DPoP` without it is
    /// refused, since it would belong to another token.
    ///
    /// - Throws: ``TokenError`` when a token or a session is missing, when the token was refused and there is no other
    ///   one, when somebody has signed out, or in, meanwhile (`sessionChanged`), or when no proof can be made: the call
    ///   had no effect.
    @concurrent public func send(_ call: HTTPCall) async throws -> HTTPReply {
        try await send(call, of: source.signIn)
    }

    /// Sends a call that began in a sign-in. See ``send(_:)``.
    ///
    /// - Parameters:
    ///   - call: the call.
    ///   - signIn: the source's when the call began.
    /// - Returns: the reply.
    /// - Throws: as ``send(_:)``; `sessionChanged` when somebody has signed out, or in, since then.
    @concurrent package func send(_ call: HTTPCall, of signIn: SignInMark?) async throws -> HTTPReply {
        guard let origin = try? call.origin, let access = self.access(origin) else {
            return try await transport.send(call)
        }
        guard access.allows(source.kind) else {
            throw TokenError(
                .invalidConfiguration, "This origin gets no credential of the kind of this call (\(source.kind)).",
                suggestion: "Name the kind at the origin, or call it as one of those that are named.")
        }
        let outgoing: Outgoing
        do {
            outgoing = try await withCredentials(call, access)
        } catch is CancellationError where call.isSentOnce {
            throw HTTPTransportError(.cancelled, "The task was cancelled before the call was sent.")
        }
        // A renewal may have been waited for, and its token be that of who has come meanwhile.
        guard source.signIn === signIn else { throw TokenError.userChanged }
        var reply = try await transmit(outgoing)
        guard reply.status == 401 else { return reply }
        guard let token = outgoing.token else { return try await checked(reply, outgoing.session, call, access) }
        let refusal = try await refusal(in: &reply, access, limit: call.limits.replyBytes)
        guard refusal != .advice, refusal != .proof else { return reply }
        let isCertain = refusal == .invalidToken && !call.isSentOnce
        let mayRepeat = call.mayBeRepeated || isCertain && call.hasReplayableBody
        let again: Outgoing
        do {
            // Also where it is not sent again: the next call needs a token that is accepted.
            again = try await withCredentials(call, access, rejecting: token)
        } catch let error as TokenError {
            guard isFinal(error), mayRepeat || isCertain else { return reply }
            throw error
        } catch is CancellationError where call.isSentOnce {
            return reply
        }
        guard mayRepeat, again.isOfSameUser(as: outgoing) else { return reply }
        _ = try? await reply.body.collect(upTo: 64 << 10)
        return try await transmit(again)
    }

    /// Whether nothing gives another token without the app.
    private func isFinal(_ error: TokenError) -> Bool {
        if error.code == .signInNeeded { return true }
        let final: [TokenError.Code] = [.deviceNotAuthenticated, .implicitUserMissing, .notRegistered]
        return source.user == nil && final.contains(error.code)
    }

    /// Sends a call, with a proof where its token, or its session, is bound to a key.
    private func transmit(_ outgoing: Outgoing) async throws -> HTTPReply {
        guard let binding = outgoing.binding else {
            try checkUser(of: outgoing)
            return try await transport.send(outgoing.call)
        }
        let call = outgoing.call
        let target = ProofMaker.Target(
            method: call.request.method, url: call.request.url ?? "", role: .resource,
            token: outgoing.token ?? outgoing.session?.token)
        var isUnderWay = false
        do {
            return try await binding.proofs.exchange(
                target, key: binding.key, mayRepeat: call.hasReplayableBody, isHarmless: call.mayBeRepeated
            ) { proof in
                var proved = call
                if let token = outgoing.token {
                    proved.request.headerFields.setBound(token, proof: proof)
                } else {
                    proved.request.headerFields[.dpop] = proof
                }
                try checkUser(of: outgoing)
                isUnderWay = true
                let reply = try await transport.send(proved)
                isUnderWay = false
                return reply
            } read: { reply in
                (reply.response.headerFields, ResourceRefusal(reply.response) == .nonce)
            } drain: { reply in
                _ = try? await reply.body.collect(upTo: 64 << 10)
            }
        } catch is CancellationError where call.isSentOnce && !isUnderWay {
            throw HTTPTransportError(.cancelled, "The task was cancelled before the call was sent.")
        }
    }

    private func checkUser(of outgoing: Outgoing) throws(TokenError) {
        guard source.signIn === outgoing.signIn else { throw TokenError.userChanged }
    }

    /// A reply with status 401 to a call that carried the session alone, or none.
    ///
    /// - Throws: ``TokenError`` with code `signInNeeded` when the session has ended: the call had no effect. A call
    ///   that is sent once returns its reply, which decides what is said of it.
    private func checked(
        _ received: HTTPReply, _ session: Session?, _ call: HTTPCall, _ access: ResourceAccess
    ) async throws -> HTTPReply {
        var reply = received
        guard let session, let user = source.user, !call.isSentOnce else { return reply }
        guard try await refusal(in: &reply, access, limit: call.limits.replyBytes) == .other else { return reply }
        guard try await user.removeIfEnded(session) else { return reply }
        throw TokenError.signInNeeded(.sessionRefused)
    }

    private func refusal(
        in reply: inout HTTPReply, _ access: ResourceAccess, limit: Int
    ) async throws -> Refusal {
        do {
            let advice = try await ReceivedAdvice.find(
                in: &reply, acceptsDecisions: access.acceptsDecisions, limit: limit)
            if advice != nil { return .advice }
        } catch is WireError {
            // It speaks for itself.
        }
        switch ResourceRefusal(reply.response) {
        case .token: return .invalidToken
        case .nonce, .proof: return .proof
        case nil: return .other
        }
    }

    /// A call with what its origin gets. Where somebody signs in between token and session, perhaps in another process,
    /// both are read once more.
    private func withCredentials(
        _ call: HTTPCall, _ access: ResourceAccess, rejecting rejected: Secret? = nil
    ) async throws -> Outgoing {
        for _ in 0..<2 {
            let outgoing = try await read(call, access, rejecting: rejected)
            if outgoing.isOfOneSignIn { return outgoing }
        }
        throw TokenError.userChanged
    }

    private func read(
        _ original: HTTPCall, _ access: ResourceAccess, rejecting rejected: Secret?
    ) async throws -> Outgoing {
        var outgoing = Outgoing(call: original, signIn: source.signIn)
        if access.sendsAccessToken, original.request.headerFields[.authorization] == nil {
            guard original.request.headerFields[.dpop] == nil else {
                throw Self.foreignProof
            }
            if let token = try await source.token(rejecting: rejected) {
                outgoing.token = token.value
                outgoing.owner = token.owner
                outgoing.binding = token.binding
                if token.binding == nil {
                    outgoing.call.request.headerFields[.authorization] = TokenScheme.bearer.field(token.value)
                }
            }
        }
        guard access.sendsSession else { return outgoing }
        guard let user = source.user else {
            guard access.sendsAccessToken || source is NoTokens else { throw Self.noSession }
            return outgoing
        }
        try await add(sessionOf: user, to: &outgoing)
        return outgoing
    }

    private func add(sessionOf user: TokenManager, to outgoing: inout Outgoing) async throws {
        guard let session = try await user.session() else {
            throw TokenError.signInNeeded(try await user.storedTokens() == nil ? .notSignedIn : .noSession)
        }
        outgoing.session = session
        let (name, token) = (user.configuration.sessionCookieName, session.token.reveal())
        let given = outgoing.call.request.headerFields
        var fields = given
        let others = given[.cookie].map { "\($0); " } ?? ""
        fields.setCookie("\(others)\(name)=\(token)")
        fields[user.configuration.sessionField] = token
        outgoing.call.request.headerFields = fields
        if outgoing.token == nil { outgoing.binding = try await binding(of: session, user, beside: given) }
    }

    /// The key that proves a session which goes without an access token of ours; `nil` when it belongs to none. Where
    /// the call brings an `Authorization` and a proof of its own, these decide.
    private func binding(
        of session: Session, _ user: TokenManager, beside given: HTTPFields
    ) async throws -> AccessToken.Binding? {
        guard session.keyThumbprint != nil, given[.authorization] == nil || given[.dpop] == nil else { return nil }
        guard given[.dpop] == nil else { throw Self.foreignProof }
        return try await user.proofs.keys.key(of: session).map {
            AccessToken.Binding(key: $0, proofs: user.proofs)
        }
    }

    private static let noSession = TokenError(
        .invalidConfiguration, "The origin gets the user's session alone, and the call is not the user's.",
        suggestion: "Let the origin get the access token.")

    private static let foreignProof = TokenError(
        .unprovable, "The call brings a field DPoP of its own, and no Authorization that it belongs to.",
        suggestion: "Leave the field out: the proof is made here.")
}
