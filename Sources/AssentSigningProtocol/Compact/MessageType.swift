/// The `typ` of a signed message (TSP/1 "Message registry"). No key signs a type that the registry does not give
/// it; the type of the content says which key signs.
package enum MessageType: String, Hashable, Sendable, CaseIterable {
    case certificate = "tsp-cert+jwt"
    case next = "tsp-next+jwt"
    case previous = "tsp-previous+jwt"
    case invite = "tsp-invite+jwt"
    case start = "tsp-start+jwt"
    case offer = "tsp-offer+jwt"
    case proof = "tsp-proof+jwt"
    case evaluation = "tsp-eval+jwt"
    case nonce = "tsp-nonce+jwt"
    case keyPossession = "tsp-pop+jwt"
    case enrolment = "tsp-enrol+jwt"
    case enrolled = "tsp-enrolled+jwt"
    case record = "tsp-record+jwt"
    case status = "tsp-status+jwt"
    case ticket = "tsp-tds+jwt"
    case list = "tsp-list+jwt"
    case fetched = "tsp-fetched+jwt"
    case document = "tsp-txd+jwt"
    case decision = "tsp-decision+jwt"
    case possession = "tsp-possession+jwt"
    case receipt = "tsp-receipt+jwt"
    case confirmation = "tsp-confirm+jwt"
    case change = "tsp-change+jwt"
    case endorsement = "tsp-endorse+jwt"
    case login = "tsp-login+jwt"

    /// The longest signed message in characters.
    package static let maximumLength = 48 << 10

    /// The longest encrypted message, and the longest body of a request, in bytes.
    package static let maximumBody = 64 << 10

    /// How long a message of this type may be, in characters.
    package var limit: Int {
        switch self {
        case .ticket, .invite: 800
        case .proof, .login: 2 << 10
        default: Self.maximumLength
        }
    }

    /// How long the content of a message of this type may be, in bytes.
    package var contentLimit: Int { self == .document ? 16 << 10 : limit }
}
