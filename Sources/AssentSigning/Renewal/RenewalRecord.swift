import AssentCore
import AssentSigningProtocol

/// New keys for a container, on their way: what it will be when they are the container's, and what is to be removed
/// then.
struct RenewalRecord: ShapedPart {
    /// The form of this record: 1.
    var format = 1
    /// The container with its new keys, as far as the renewal has come.
    var next: ContainerRecord
    /// Whether the user has a code for it.
    var hasCode: Bool
    /// What names the old keys at the key provider.
    var oldKeys: SigningID
    /// The `tsp-offer+jwt` of the old keys.
    var oldOffer: String
    /// What old keys have signed, at most 2. It is stored before it is sent: a repetition must be the same bytes.
    var endorsements: [String] = []

    static let shape = MessageShape<Self>(Self.init) {
        Member("format", \.format, .integer(1...1))
        Member("next", \.next)
        Member(flag: "hasCode", \.hasCode)
        Member("oldKeys", \.oldKeys)
        Member("oldOffer", \.oldOffer, .compact)
        Member("endorsements", \.endorsements, .compacts(0...2))
    }

    func oldOfferContent() throws(SigningError) -> Offer {
        try SigningError.mapped(try UnverifiedMessage<Offer>(oldOffer).content)
    }

    /// The thumbprint of the device key that is to be replaced: the offer of the renewal is for it.
    var oldDeviceKey: KeyThumbprint? {
        get throws { try next.offerContent().flatMap { KeyThumbprint(text: $0.head.audience) } }
    }
}

extension RenewalRecord {
    /// Seconds after the end of an offer for which the digits of a reset may still come.
    private static let completion = 600

    /// Whether the digits of a reset may still come at this time of the server's.
    func mayWaitForDigits(at time: Int) throws -> Bool {
        guard hasCode, let offer = try next.offerContent() else { return false }
        return time <= offer.expiresAt + Self.completion
    }
}

extension ContainerStore {
    private static func renewal(_ id: SigningID) -> String { "signing.renewal.\(id.text)" }

    /// The renewal of a container that is under way.
    func renewal(of id: SigningID) async throws -> RenewalRecord? {
        try await read(Self.renewal(id))
    }

    /// Stores how far a renewal has come. Nobody else writes it at the same time.
    func keep(_ renewal: RenewalRecord) async throws {
        try await store.update(
            Self.renewal(renewal.next.id), to: Secret(bytes: renewal.encoded()), expected: .any)
    }

    func removeRenewal(of id: SigningID) async throws {
        try await store.update(Self.renewal(id), to: nil, expected: .any)
    }
}
