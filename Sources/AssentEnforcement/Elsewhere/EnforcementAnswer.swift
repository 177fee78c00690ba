package import AssentCore

/// What the engine says of one request to a gateway elsewhere. Only ``granted(_:)`` lets it through.
package enum EnforcementAnswer: Sendable, Equatable {
    /// It may be forwarded; once, where a transaction was taken for it, which is on record as forwarded already.
    case granted(Grant)
    /// The user must do something first.
    case advised(Advised)
    /// The transaction was used before, for this very request; `nil` where nothing is known of what became of it.
    case alreadyTaken(transaction: String, outcome: EnforcementOutcome?, newNonce: String?)
    /// It is denied.
    case denied(Denial)
    /// The credentials let nobody in.
    case refused(CredentialRefusal)
    /// A policy binds the body. Nothing was looked up, made or taken, and no proof was spent: ask again, with the same
    /// attempt.
    case needBody(BodyForm, limit: Int)

    /// What is to be sent of a body.
    package enum BodyForm: String, Sendable, Hashable, CaseIterable {
        /// All of it, to make a transaction from.
        case whole
        /// Its SHA-256, to take one.
        case digest
    }

    /// A request that may be forwarded.
    package struct Grant: Sendable, Equatable {
        /// Who calls; `nil` for nobody who is known, and for a client that calls for itself.
        package var user: User?

        /// The scopes of the caller's access token; `nil` for a caller without one.
        package var scopes: [String]?

        /// The transaction that was taken for it.
        package var transaction: String?

        /// The signed token for the service, where the question asked for one and somebody calls.
        package var identity: Secret?

        /// For how many seconds the same question has the same answer, if no session, grant or policy changes: an upper
        /// bound. 0 where the answer must not be kept at all.
        package var keepSeconds = 0

        /// The nonce for the client's next proof, where it is time for a new one.
        package var newNonce: String?

        /// A request of nobody who is known.
        package init() {}
    }

    /// A user.
    package struct User: Sendable, Equatable {
        /// The id; never given to another user.
        package var id: String

        /// The name, unique in the realm.
        package var name: String

        /// The claims that the question asked for and the user has.
        package var claims = JSONObject()

        /// A user.
        package init(id: String, name: String) {
            self.id = id
            self.name = name
        }
    }

    /// What the user must do first.
    package struct Advised: Sendable, Equatable {
        /// The advice.
        package var advice: Advice

        /// What a new access token must be asked for with, where that would help (RFC 9470 §3).
        package var acrValues: [String] = []

        /// Whether the caller came with an access token.
        package var hasToken = false

        /// The nonce for the client's next proof, where it is time for a new one.
        package var newNonce: String?

        /// An advice.
        package init(_ advice: Advice) { self.advice = advice }
    }

    /// Why a request is denied.
    package struct Denial: Sendable, Equatable {
        /// What the client is answered.
        package enum Reason: String, Sendable, Hashable, CaseIterable {
            /// Nobody has signed in: 401.
            case noSession
            /// The policies do not allow it, or the transaction is not for it: 403.
            case forbidden
            /// Something is wrong with the request itself, or there were too many: as `code` and `detail` say.
            case request
            /// The credentials are of a kind that the route does not take.
            case tokenKind
            /// The engine cannot decide now: 503. Nothing was granted.
            case unavailable
            /// Nobody knows whether a transaction was made or used: 503. Nothing was granted.
            case outcomeUnknown
        }

        /// What the client is answered.
        package var reason: Reason

        /// With ``Reason/request``: the engine's code.
        package var code: String?

        /// With ``Reason/request``: what is wrong, for people.
        package var detail: String?

        /// The nonce for the client's next proof, where it is time for a new one.
        package var newNonce: String?

        /// A denial.
        package init(_ reason: Reason, code: String? = nil, detail: String? = nil) {
            self.reason = reason
            self.code = code
            self.detail = detail
        }
    }

    /// Why credentials let nobody in.
    package enum CredentialRefusal: Sendable, Equatable {
        /// The session's cookie came from a page that may not use it: 403.
        case cookie
        /// The access token, the session's key or its proof: a challenge of this scheme, `Bearer` or `DPoP`, with this
        /// `error`, where the request has a token at all; 403 for `insufficient_scope`, else 401.
        case token(scheme: TokenScheme, error: String?, detail: String, nonce: String?)
    }
}
