import AssentCore
import AssentEngine
import AssentPayload
import Hummingbird

/// The engine of the same process decides: three crossings of the database at most.
struct LocalDecisions: GatewayDecisions {
    let access: GatewayAccess

    var isSealed: Bool { access.isSealed }

    func decide(_ question: GatewayQuestion, body: BoundBodyReader) async throws -> GatewayAnswer {
        let inquiry = question.inquiry
        // Also a proof is verified here, before anything is made or taken: who is asked for another nonce may repeat
        // an approved request.
        let admission = try await access.admit(inquiry)
        if let refusal = try Self.refusal(of: admission.caller, question) {
            return GatewayAnswer(verdict: .refused(refusal))
        }
        // Nobody without a session can have a transaction: their bodies are not even read.
        let needsBody = admission.bindsBody && admission.caller.presented != nil
        let boundBody = needsBody ? try await body.checked() : nil
        let decision = await access.settle(
            GatewayRequest(
                admission, mediaType: question.mediaType, body: boundBody, transactionID: question.transactionID,
                clientAddress: question.clientAddress, idempotencyKey: question.idempotencyKey))
        let verdict: GatewayAnswer.Verdict =
            switch decision {
            case .granted(let taken):
                .granted(
                    LocalGrant(
                        access: access, inquiry: inquiry, caller: admission.caller, taken: taken,
                        clientAddress: question.clientAddress), body: boundBody)
            case .advised(let advice, _):
                .advised(advice, acrValues: acrValues(admission.caller, advice, realm: inquiry.realm))
            case .alreadyTaken(let record): .alreadyTaken(record.id, outcome: record.outcome?.json ?? .null)
            case .denied(let denial): .denied(denial)
            }
        return GatewayAnswer(verdict: verdict, newNonce: admission.caller.newNonce)
    }

    private func acrValues(_ caller: Caller, _ advice: Advice, realm: String) -> [String] {
        guard case .accessToken = caller else { return [] }
        return access.acrValues(meeting: advice, realm: realm)
    }

    /// Why a caller is refused before any policy is asked; `nil` when they are not.
    private static func refusal(of caller: Caller, _ question: GatewayQuestion) throws -> CallerRefusal? {
        switch caller {
        case .refusedToken(let refusal):
            .credentials(try CredentialRefusal(refusal, scopes: question.inquiry.accessToken.scopes))
        case .session(_, .cookie, _): question.mayUseCookie ? nil : .foreignPage
        case .refusedKind: .kind
        case .session(_, .field, _), .accessToken, .anonymous, .foreignSession: nil
        }
    }
}

extension CredentialRefusal {
    /// The refusal as clients hear it, on a route that wants these scopes.
    init(_ refusal: TokenRefusal, scopes: [String]) throws {
        try self.init(
            refusal.scheme, error: refusal.error, detail: refusal.detail, nonce: refusal.nonce, scopes: scopes)
    }

    /// The same by its parts.
    init(_ scheme: TokenScheme, error: String?, detail: String, nonce: String?, scopes: [String]) throws {
        let answer = try TokenChallenge.answer(scheme, error: error, scopes: scopes)
        self.init(status: answer.status, detail: detail, challenge: answer.field, nonce: nonce)
    }
}

/// A grant of the engine of the same process.
private struct LocalGrant: GatewayGrant {
    let access: GatewayAccess
    let inquiry: GatewayInquiry
    let caller: Caller
    let taken: TakenTransaction?
    let clientAddress: IPAddress?

    /// Whose sealed session the request has come through: what stays with a reply runs when the request's task has
    /// left the door that says it.
    let peer: PayloadPeer? = SealedSession.peer

    var user: String? { caller.user?.username }
    var transaction: String? { taken?.id }

    func token(_ identity: ServiceIdentity, issuer: String, of request: SpentRequest?) async throws -> Secret? {
        try await access.token(identity, about: caller, realm: inquiry.realm, issuer: issuer, of: request)
    }

    func isStillGranted() async -> Bool {
        var again = inquiry
        again.isApproved = taken != nil
        let asked = again
        return await SealedSession.$peer.withValue(peer) {
            await access.isStillGranted(asked, to: caller, clientAddress: clientAddress)
        }
    }

    func forwarding(
        _ send: @escaping @Sendable () async -> (Response, UpstreamOutcome)
    ) async -> ForwardingResult<Response> {
        guard let taken else { return .sent(await send().0) }
        return await access.forwarding(taken, send: send)
    }
}
