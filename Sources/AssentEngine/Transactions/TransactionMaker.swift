/// Who has asked for a transaction, and alone may take it. The same session can ask at several places: at one, it must
/// not be able to spend what another one waits for.
package enum TransactionMaker: Sendable, Hashable {
    /// The gateway beside the engine.
    case gateway
    /// The gateways elsewhere of the realm's group with this name.
    case group(String)
    /// The user with this id, by policy decisions over REST: an enforcement point's own, or whose access it is.
    case caller(String)

    private static let callerPrefix = "caller "
    private static let groupPrefix = "group "

    /// As it is stored and compared.
    var text: String {
        switch self {
        case .gateway: "gateway"
        case .group(let name): Self.groupPrefix + name
        case .caller(let id): Self.callerPrefix + id
        }
    }

    /// Where it was asked for.
    var kind: String { isGateway ? "GATEWAY" : "POLICY" }

    /// Whether it is a gateway, beside the engine or elsewhere.
    var isGateway: Bool { if case .caller = self { false } else { true } }

    /// Reads a stored text; any other is nobody.
    init(stored text: String) {
        if text == Self.gateway.text {
            self = .gateway
        } else if text.hasPrefix(Self.groupPrefix) {
            self = .group(String(text.dropFirst(Self.groupPrefix.count)))
        } else {
            self = .caller(String(text.dropFirst(Self.callerPrefix.count)))
        }
    }

    /// What an id is answered with that is unknown, expired, used, or of another request: REST's enforcement points get
    /// a new transaction as AM gives them one, clients of gateways a refusal.
    var replacesUselessTransactions: Bool { !isGateway }
}
