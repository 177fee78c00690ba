import AssentCore
import AssentTokens
import HTTPTypes

/// What is configured for a call.
struct CallTerms: Sendable {
    let access: ResourceAccess
    let policy: AuthorizationPolicy?
    let requiresBinding: Bool
    /// Who was signed in when the call began.
    let signIn: SignInMark?

    /// The call with a transaction's id where its resource looks for it.
    ///
    /// - Throws: what the policy's `decorate` throws, and ``AuthorizationError`` when it changed too much.
    func approved(_ call: HTTPCall, _ transactionID: String) throws -> HTTPCall {
        guard let policy, let decorate = policy.decorate else { return call.with(transactionID, access) }
        return try policy.decorated(call, transactionID, by: decorate)
    }
}

extension HTTPCall {
    /// The same call with a transaction's id where the resource looks for it; everything else as it was.
    func with(_ transactionID: String, _ access: ResourceAccess) -> HTTPCall {
        var call = self
        if access.sendsTransactionInHeader {
            call.request.headerFields[.transactionID] = transactionID
        } else {
            call.request.path = URLText.appending(WireName.transactionParameter, transactionID, to: request.path ?? "/")
        }
        return call
    }
}
