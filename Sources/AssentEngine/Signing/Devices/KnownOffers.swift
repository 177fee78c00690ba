import AssentCore
import AssentSigningProtocol

/// The offers by which containers were made, of those that were read lately, by their text. The calls of a device with
/// a PIN look into it, some of them twice, and it is the longest message that there is.
final class KnownOffers: Sendable {
    private let known = Locked(RecentValues<String, Offer>(generation: 256))

    /// What an offer says that was stored as it was signed.
    ///
    /// - Throws: `SigningProtocolError` for a text that is not an offer.
    func offer(_ text: String) throws(SigningProtocolError) -> Offer {
        if let offer = known.withLock({ $0.find(text) }) { return offer }
        let offer = try UnverifiedMessage<Offer>(text).content
        known.withLock { $0.keep(offer, for: text) }
        return offer
    }
}
