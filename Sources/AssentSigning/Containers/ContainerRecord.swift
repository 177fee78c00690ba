import AssentCore
import AssentSigningProtocol

/// What a device keeps of one container, or of an enrolment on its way to one. Each step of an enrolment is stored
/// before the next call, so that it goes on from there after a crash, with the same bytes.
struct ContainerRecord: MessagePart {
    /// The form of this record.
    var format: Int
    /// The device's own name of it; key names begin with it.
    var id: SigningID
    /// The issuer.
    var issuer: String
    /// The issuer's name.
    var issuerName: String
    /// The pinned identity key.
    var identity: ProtocolKey
    /// The highest `min` of a certificate that was seen.
    var minimum: Int
    /// Certificates of online keys.
    var certificates: [String]
    /// When this device made it, by its own clock: for sorting only.
    var created: Int
    /// The invite's code.
    var code: InviteCode
    /// The invite, if it was scanned.
    var pid: SigningID?
    /// The container's name.
    var name: String?
    /// Where push messages go.
    var pushID: String?
    /// The server's offer.
    var offer: String?
    /// The container's id.
    var did: SigningID?
    /// The device's nonce, from before the commitment.
    var nonceD: SigningNonce?
    /// The server's nonce.
    var nonceS: SigningNonce?
    /// The user's id.
    var sub: String?
    /// The user's name.
    var user: String?
    /// The signed key list.
    var enrol: String?
    /// For the help desk.
    var serial: String?
    /// When the keys expire.
    var expires: Int?
    /// From when they may be renewed.
    var renewable: Int?
    /// What `confirm` sends back.
    var echo: SigningNonce?
    /// Recognises transaction ids.
    var handle: Secret?
    /// Whether `confirm` was answered.
    var confirmed: Bool
    /// The state that the server signed last.
    var state: ContainerState
    /// From when on it may approve.
    var approvals: Int
    /// The latest time that the server signed.
    var serverTime: Int
    /// The reason of a deletion that the server has not answered yet.
    var deletion: String?
    /// Whether the server has signed that it has ended: what is left is removed.
    var ended: Bool
    /// Texts of the app's own.
    var properties: [String: String]
    /// The passwords, and the keys that they seal.
    var slots: [SlotRecord]

    /// What names its keys at the key provider since the last renewal; before that ``id`` does.
    var keyID: SigningID?

    /// The content with these members; the reader checks their bounds.
    init(
        format: Int, id: SigningID, issuer: String, issuerName: String, identity: ProtocolKey, minimum: Int,
        certificates: [String], created: Int, code: InviteCode, pid: SigningID? = nil, name: String? = nil,
        pushID: String? = nil, offer: String? = nil, did: SigningID? = nil, nonceD: SigningNonce? = nil,
        nonceS: SigningNonce? = nil, sub: String? = nil, user: String? = nil, enrol: String? = nil,
        serial: String? = nil, expires: Int? = nil, renewable: Int? = nil, echo: SigningNonce? = nil,
        handle: Secret? = nil, confirmed: Bool = false, state: ContainerState, approvals: Int, serverTime: Int,
        deletion: String? = nil, ended: Bool = false, properties: [String: String], slots: [SlotRecord] = []
    ) {
        self.format = format
        self.id = id
        self.issuer = issuer
        self.issuerName = issuerName
        self.identity = identity
        self.minimum = minimum
        self.certificates = certificates
        self.created = created
        self.code = code
        self.pid = pid
        self.name = name
        self.pushID = pushID
        self.offer = offer
        self.did = did
        self.nonceD = nonceD
        self.nonceS = nonceS
        self.sub = sub
        self.user = user
        self.enrol = enrol
        self.serial = serial
        self.expires = expires
        self.renewable = renewable
        self.echo = echo
        self.handle = handle
        self.confirmed = confirmed
        self.state = state
        self.approvals = approvals
        self.serverTime = serverTime
        self.deletion = deletion
        self.ended = ended
        self.properties = properties
        self.slots = slots
    }

    /// Reads the members and checks their bounds.
    init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        format = try reader.read("format", .integer(1...1))
        id = try reader.read("id")
        issuer = try reader.read("issuer", .issuer)
        issuerName = try reader.read("issuerName", .shown(1...64))
        identity = try reader.read("identity")
        minimum = try reader.read("minimum", .integer(1...1 << 31))
        certificates = try reader.read("certificates", .compacts(0...64))
        created = try reader.read("created")
        code = try reader.read("code")
        pid = reader.has("pid") ? try reader.read("pid") : nil
        name = reader.has("name") ? try reader.read("name", .shown(1...128)) : nil
        pushID = reader.has("pushID") ? try reader.read("pushID", .ascii(0...1024)) : nil
        offer = reader.has("offer") ? try reader.read("offer", .compact) : nil
        did = reader.has("did") ? try reader.read("did") : nil
        nonceD = reader.has("nonceD") ? try reader.read("nonceD") : nil
        nonceS = reader.has("nonceS") ? try reader.read("nonceS") : nil
        sub = reader.has("sub") ? try reader.read("sub", .ascii(1...64)) : nil
        user = reader.has("user") ? try reader.read("user", .shown(1...64)) : nil
        enrol = reader.has("enrol") ? try reader.read("enrol", .compact) : nil
        serial = reader.has("serial") ? try reader.read("serial", .ascii(1...20)) : nil
        expires = reader.has("expires") ? try reader.read("expires") : nil
        renewable = reader.has("renewable") ? try reader.read("renewable") : nil
        echo = reader.has("echo") ? try reader.read("echo") : nil
        handle = reader.has("handle") ? try reader.read("handle", .secret(bytes: 32)) : nil
        confirmed = try reader.flag("confirmed")
        state = try reader.read("state")
        approvals = try reader.read("approvals")
        serverTime = try reader.read("serverTime")
        deletion = reader.has("deletion") ? try reader.read("deletion", .shown(1...1000)) : nil
        ended = try reader.flag("ended")
        properties = try reader.read(
            "properties", .shownTexts(limit: 16, names: UpdateBody.isPropertyName, count: 0...256))
        slots = reader.has("slots") ? try reader.read("slots", .objects(0...3)) : []
        keyID = reader.has("keyID") ? try reader.read("keyID") : nil
    }

    /// The members, in the order of the specification's example.
    var members: JSONObject {
        JSONObject(omittingNil: [
            "format": .integer(format), "id": .string(id.text), "issuer": .string(issuer),
            "issuerName": .string(issuerName),
            "identity": identity.json, "minimum": .integer(minimum),
            "certificates": .array(certificates.map(JSONValue.string)), "created": .integer(created),
            "code": .string(code.canonical.reveal()), "pid": pid.map { .string($0.text) },
            "name": name.map { .string($0) },
            "pushID": pushID.map { .string($0) }, "offer": offer.map { .string($0) },
            "did": did.map { .string($0.text) },
            "nonceD": nonceD.map { .string($0.text) }, "nonceS": nonceS.map { .string($0.text) },
            "sub": sub.map { .string($0) },
            "user": user.map { .string($0) }, "enrol": enrol.map { .string($0) },
            "serial": serial.map { .string($0) }, "expires": expires.map { .integer($0) },
            "renewable": renewable.map { .integer($0) }, "echo": echo.map { .string($0.text) },
            "handle": handle.map { .string(Base64URL.encode($0.revealBytes())) },
            "confirmed": confirmed ? true : nil, "state": .string(state.rawValue), "approvals": .integer(approvals),
            "serverTime": .integer(serverTime), "deletion": deletion.map { .string($0) },
            "ended": ended ? true : nil,
            "properties": .object(
                JSONObject(properties.sorted { $0.key < $1.key }.map { .init(name: $0.key, value: .string($0.value)) })),
            "slots": slots.isEmpty ? nil : .array(slots.map(\.json)),
            "keyID": keyID.map { .string($0.text) },
        ])
    }
}
