import AssentCore
import AssentSigningProtocol

/// New keys for a container, on their way: what it will be when they count, and what is to be removed then.
struct RenewalRecord: MessagePart {
    /// The form of this record.
    var format: Int
    /// The container with its new keys, as far as the renewal has come.
    var next: ContainerRecord
    /// Whether the user has a code for it.
    var hasCode: Bool
    /// What names the old keys at the key provider.
    var oldKeys: SigningID
    /// The offer of the old keys.
    var oldOffer: String
    /// What old keys have signed. It is stored before it is sent: a repetition must be the same bytes.
    var endorsements: [String]

    /// The content with these members; the reader checks their bounds.
    init(next: ContainerRecord, hasCode: Bool, oldKeys: SigningID, oldOffer: String) {
        format = 1
        self.next = next
        self.hasCode = hasCode
        self.oldKeys = oldKeys
        self.oldOffer = oldOffer
        endorsements = []
    }

    /// Reads the members and checks their bounds.
    init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        format = try reader.read("format", .integer(1...1))
        next = try reader.read("next")
        hasCode = try reader.flag("hasCode")
        oldKeys = try reader.read("oldKeys")
        oldOffer = try reader.read("oldOffer", .compact)
        endorsements = try reader.read("endorsements", .compacts(0...2))
    }

    /// The members, in the order of the specification's example.
    var members: JSONObject {
        JSONObject(omittingNil: [
            "format": .integer(format), "next": .object(next.members), "hasCode": hasCode ? true : nil,
            "oldKeys": .string(oldKeys.text), "oldOffer": .string(oldOffer),
            "endorsements": .array(endorsements.map(JSONValue.string)),
        ])
    }
}

extension ContainerStore {
    private static func renewal(_ id: SigningID) -> String { "signing.renewal.\(id.text)" }

    /// The renewal of a container that is under way.
    func renewal(of id: SigningID) async throws -> RenewalRecord? {
        guard let stored = try await store.value(Self.renewal(id)) else { return nil }
        return try parse(stored.value)
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
