import AssentCore
import AssentSigningProtocol

/// What a device keeps of one container, or of an enrolment on its way to one. Each step of an enrolment is stored
/// before the next call, so that it goes on from there after a crash, with the same bytes.
struct ContainerRecord {
    /// The form of this record: 1.
    var format = 1
    /// The device's own name of it; key names begin with it.
    var id: SigningID
    var issuer: String
    /// The issuer's name; nobody has signed it before the offer.
    var issuerName: String
    /// The pinned identity key.
    var identity: ProtocolKey
    /// The highest `min` of a certificate that was seen.
    var minimum: Int
    /// `tsp-cert+jwt` of online keys, at most 64.
    var certificates: [String]
    /// Seconds of this device's own clock: for sorting only.
    var created: Int
    /// The invite's code.
    var code: InviteCode
    /// The invite, if it was scanned.
    var pid: SigningID?
    var name: String?
    /// Where push messages go; empty: nowhere.
    var pushID: String?
    /// How far the keys have come.
    var phase = KeyPhase.begun
    /// The container's id, from the offer on.
    var did: SigningID?
    /// The user's id, from the commitment on.
    var sub: String?
    /// The user's name, which may change with a renewal.
    var user: String?
    /// The container's number, for the help desk.
    var serial: String?
    /// When the keys expire, in the server's seconds.
    var expires: Int?
    /// From when they may be renewed, in the server's seconds.
    var renewable: Int?
    /// The key that recognises transaction ids, 32 bytes.
    var handle: Secret?
    /// The state that the server signed last.
    var state = ContainerState.unconfirmed
    /// From when on it may approve, in the server's seconds.
    var approvals = 0
    /// The latest time that the server signed, in steps of a minute.
    var serverTime = 0
    /// The reason of a deletion that the server has not answered yet.
    var deletion: String?
    /// Whether the server has signed that it has ended: what is left is removed.
    var ended = false
    /// Texts of the app's own, at most 16.
    var properties: [String: String] = [:]
    /// The passwords, and the keys that they seal.
    var slots: [SlotRecord] = []
    /// What names its keys at the key provider since the last renewal; before that ``id`` does.
    var keyID: SigningID?
}

extension ContainerRecord: MessagePart {
    init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        format = try reader.integer("format", 1...1)
        id = try reader.fixed("id")
        issuer = try reader.issuer("issuer")
        issuerName = try reader.shown("issuerName", 1...64)
        identity = try reader.key("identity")
        minimum = try reader.integer("minimum", 1...1 << 31)
        certificates = try reader.compacts("certificates", 0...64)
        created = try reader.integer("created")
        code = try reader.inviteCode("code")
        pid = reader.has("pid") ? try reader.fixed("pid") : nil
        name = reader.has("name") ? try reader.shown("name", 1...128) : nil
        pushID = reader.has("pushID") ? try reader.ascii("pushID", 0...1024) : nil
        phase = try KeyPhase(reading: &reader)
        did = reader.has("did") ? try reader.fixed("did") : nil
        sub = reader.has("sub") ? try reader.ascii("sub", 1...64) : nil
        user = reader.has("user") ? try reader.shown("user", 1...64) : nil
        serial = reader.has("serial") ? try reader.ascii("serial", 1...20) : nil
        expires = reader.has("expires") ? try reader.integer("expires") : nil
        renewable = reader.has("renewable") ? try reader.integer("renewable") : nil
        handle = reader.has("handle") ? Secret(bytes: try reader.bytes("handle", count: 32)) : nil
        state = try reader.choice("state")
        approvals = try reader.integer("approvals")
        serverTime = try reader.integer("serverTime")
        deletion = reader.has("deletion") ? try reader.shown("deletion", 1...1000) : nil
        ended = try reader.flag("ended")
        properties = try reader.shownTexts("properties", limit: 16, names: UpdateBody.isPropertyName, count: 0...256)
        slots = reader.has("slots") ? try reader.objects("slots", 0...3) : []
        keyID = reader.has("keyID") ? try reader.fixed("keyID") : nil
    }

    var members: JSONObject {
        func text(_ text: String?) -> JSONValue? { text.map { .string($0) } }
        return JSONObject(omittingNil: [
            "format": .integer(format), "id": .string(id.text), "issuer": .string(issuer),
            "issuerName": .string(issuerName), "identity": identity.json, "minimum": .integer(minimum),
            "certificates": .array(certificates.map(JSONValue.string)), "created": .integer(created),
            "code": .string(code.canonical.reveal()), "pid": text(pid?.text), "name": text(name),
            "pushID": text(pushID), "offer": phase.member("offer"), "did": text(did?.text),
            "nonceD": phase.member("nonceD"), "nonceS": phase.member("nonceS"), "sub": text(sub), "user": text(user),
            "enrol": phase.member("enrol"), "serial": text(serial), "expires": expires.map { .integer($0) },
            "renewable": renewable.map { .integer($0) }, "echo": phase.member("echo"),
            "handle": handle.map { .string(Base64URL.encode($0.revealBytes())) },
            "confirmed": phase.member("confirmed"), "state": .string(state.rawValue),
            "approvals": .integer(approvals), "serverTime": .integer(serverTime), "deletion": text(deletion),
            "ended": ended ? true : nil,
            "properties": .object(
                JSONObject(properties.sorted { $0.key < $1.key }.map { .init(name: $0.key, value: .string($0.value)) })),
            "slots": slots.isEmpty ? nil : .array(slots.map(\.json)), "keyID": text(keyID?.text),
        ])
    }
}
