/// The `typ` of a signed message (TSP/1 "Message registry"). No key signs a type that the registry does not give it.
package enum MessageType: String, Hashable, Sendable, CaseIterable {
    /// A certificate of an online key, by the identity key.
    case certificate = "tsp-cert+jwt"
    /// The identity key's successor, by the old one.
    case next = "tsp-next+jwt"
    /// The identity key's predecessor, by the new one.
    case previous = "tsp-previous+jwt"
    /// An invite, by the server.
    case invite = "tsp-invite+jwt"
    /// The beginning of an enrolment, by the device.
    case start = "tsp-start+jwt"
    /// What the server wants of a new container.
    case offer = "tsp-offer+jwt"
    /// The proof of a call, by the device.
    case proof = "tsp-proof+jwt"
    /// An evaluation of a blinded password, by the server.
    case evaluation = "tsp-eval+jwt"
    /// The server's nonce, after the device's commitment.
    case nonce = "tsp-nonce+jwt"
    /// Possession of a `sign` or `auth` key, by that key.
    case keyPossession = "tsp-pop+jwt"
    /// A container's keys, by its new device key.
    case enrolment = "tsp-enrol+jwt"
    /// The answer to an enrolment.
    case enrolled = "tsp-enrolled+jwt"
    /// The server's statement about an enrolment.
    case record = "tsp-record+jwt"
    /// The state of a container.
    case status = "tsp-status+jwt"
    /// A transaction's id.
    case ticket = "tsp-tds+jwt"
    /// The open transactions.
    case list = "tsp-list+jwt"
    /// A document on its way to the device.
    case fetched = "tsp-fetched+jwt"
    /// A document.
    case document = "tsp-txd+jwt"
    /// A decision, by a key that the document names.
    case decision = "tsp-decision+jwt"
    /// Possession of the device, by the device key.
    case possession = "tsp-possession+jwt"
    /// The server's statement about a decision.
    case receipt = "tsp-receipt+jwt"
    /// The confirmation of an evaluation, by a key of the slot.
    case confirmation = "tsp-confirm+jwt"
    /// A change of a password, by a key of the slot.
    case change = "tsp-change+jwt"
    /// An endorsement of new keys, by an old key.
    case endorsement = "tsp-endorse+jwt"

    /// The longest signed message in characters.
    package static let maximumLength = 48 << 10

    /// The longest encrypted message, and the longest body of a request, in bytes.
    package static let maximumBody = 64 << 10

    /// How long a message of this type may be, in characters.
    package var limit: Int {
        switch self {
        case .ticket, .invite: 800
        case .proof: 2 << 10
        default: Self.maximumLength
        }
    }

    /// How long the content of a message of this type may be, in bytes.
    package var contentLimit: Int { self == .document ? 16 << 10 : limit }
}
