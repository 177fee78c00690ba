/// Who has asked for a transaction, and alone may take it. The same session can ask at several places: at one, it must
/// not be able to spend what another one waits for.
package enum TransactionMaker: Sendable, Hashable {
    /// The gateway.
    case gateway
    /// The user with this id, by policy decisions over REST: an enforcement point's own, or whose access it is.
    case caller(String)

    private static let callerPrefix = "caller "

    /// As it is stored and compared.
    var text: String {
        switch self {
        case .gateway: "gateway"
        case .caller(let id): Self.callerPrefix + id
        }
    }

    /// Where it was asked for.
    var kind: String { self == .gateway ? "GATEWAY" : "POLICY" }

    /// Reads a stored text; any other is nobody.
    init(stored text: String) {
        self = text == Self.gateway.text ? .gateway : .caller(String(text.dropFirst(Self.callerPrefix.count)))
    }

    /// What an id is answered with that is unknown, expired, used, or of another request: REST's enforcement points get
    /// a new transaction as AM gives them one, the gateway's clients a refusal.
    var replacesUselessTransactions: Bool { self != .gateway }
}
