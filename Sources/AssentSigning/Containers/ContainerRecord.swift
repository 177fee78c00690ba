import AssentCore
import AssentSigningProtocol

/// What a device keeps of one container, or of an enrolment on its way to one. Each step of an enrolment is stored
/// before the next call, so that it goes on from there after a crash, with the same bytes.
struct ContainerRecord: ShapedPart {
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
    var code: InviteCode
    /// The invite, if it was scanned, or made in this app.
    var pid: SigningID?
    /// Whether the app made the invite itself, with its user's session.
    var isOwn = false
    var name: String?
    /// Where push messages go; empty: nowhere.
    var pushID: String?
    private var offer: String?
    /// The container's id, from the offer on.
    var did: SigningID?
    private var nonceD: SigningNonce?
    private var nonceS: SigningNonce?
    /// The user's id, from the commitment on.
    var sub: String?
    /// The user's name, which may change with a renewal.
    var user: String?
    private var enrol: String?
    /// The container's number, for the help desk.
    var serial: String?
    /// When the keys expire, in the server's seconds.
    var expires: Int?
    /// From when they may be renewed, in the server's seconds.
    var renewable: Int?
    private var echo: SigningNonce?
    /// The key that recognises transaction ids, 32 bytes.
    var handle: Secret?
    private var confirmed = false
    /// The state that the server signed last.
    var state = ContainerState.unconfirmed
    /// From when on it may approve, in the server's seconds.
    var approvals = 0
    /// The latest time that the server signed, in steps of a minute.
    var serverTime = 0
    /// When the server signed what was taken over last of the container's state and tries, in its seconds.
    var statusAt: Int?
    /// How often that has been taken over, from 1 to a million and from 1 again: the time alone does not tell whether
    /// it was, since several can be signed in one second.
    var statuses: Int?
    /// The reason of a deletion that the server has not answered yet.
    var deletion: String?
    /// Whether the server has signed that it has ended: what is left is removed.
    var ended = false
    /// Whether this app has begun the enrolment with its user's own session and has not brought it to an end: nobody
    /// can type the digits then, and to enrol again goes on where it was.
    var isInterrupted: Bool { isOwn && state == .unconfirmed && deletion == nil && !ended }
    /// Texts of the app's own, at most 16.
    var properties: [String: String] = [:]
    /// The passwords, and the keys that they seal.
    var slots: [SlotRecord] = []
    /// What names its keys at the key provider since the last renewal; before that ``id`` does.
    var keyID: SigningID?

    static let shape = MessageShape<Self>(Self.init) {
        Member("format", \.format, .integer(1...1))
        Member("id", \.id)
        Member("issuer", \.issuer, .issuer)
        Member("issuerName", \.issuerName, .shown(1...64))
        Member("identity", \.identity)
        Member("minimum", \.minimum, .integer(1...1 << 31))
        Member("certificates", \.certificates, .compacts(0...64))
        Member("created", \.created)
        Member("code", \.code)
        Member(optional: "pid", \.pid)
        Member(flag: "own", \.isOwn)
        Member(optional: "name", \.name, .shown(1...128))
        Member(optional: "pushID", \.pushID, .ascii(0...1024))
        Member(optional: "offer", \.offer, .compact)
        Member(optional: "did", \.did)
        Member(optional: "nonceD", \.nonceD)
        Member(optional: "nonceS", \.nonceS)
        Member(optional: "sub", \.sub, .ascii(1...64))
        Member(optional: "user", \.user, .shown(1...64))
        Member(optional: "enrol", \.enrol, .compact)
        Member(optional: "serial", \.serial, .ascii(1...20))
        Member(optional: "expires", \.expires)
        Member(optional: "renewable", \.renewable)
        Member(optional: "echo", \.echo)
        Member(optional: "handle", \.handle, .secret(bytes: 32))
        Member(flag: "confirmed", \.confirmed)
        Member("state", \.state)
        Member("approvals", \.approvals)
        Member("serverTime", \.serverTime)
        Member(optional: "statusAt", \.statusAt)
        Member(optional: "statuses", \.statuses, .integer(1...1_000_000))
        Member(optional: "deletion", \.deletion, .shown(1...1000))
        Member(flag: "ended", \.ended)
        Member(
            "properties", \.properties, .shownTexts(limit: 16, names: UpdateBody.isPropertyName, count: 0...256))
        Member(unlessEmpty: "slots", \.slots, .objects(0...3))
        Member(optional: "keyID", \.keyID)
    }

    func check(in reader: MemberReader) throws(SigningProtocolError) {
        guard storedPhase != nil else {
            throw SigningProtocolError(
                .invalidMember, "A member of an earlier step is missing.", member: reader.path("offer"))
        }
    }

    private var storedPhase: KeyPhase? {
        KeyPhase(offer: offer, nonceD: nonceD, nonceS: nonceS, enrol: enrol, echo: echo, isConfirmed: confirmed)
    }

    /// How far the keys have come.
    var phase: KeyPhase {
        get { storedPhase ?? .begun }
        set {
            (offer, nonceD, nonceS) = (newValue.offer, newValue.made?.nonceD, newValue.committed?.nonceS)
            (enrol, echo, confirmed) = (newValue.signed?.enrol, newValue.echo, newValue.isConfirmed)
        }
    }
}

extension ContainerRecord {
    /// What an enrolment begins with.
    init(id: SigningID, _ invite: SigningInvite, issuerName: String, _ trust: IssuerTrust, created: Int) {
        self.init(
            id: id, issuer: invite.issuer, issuerName: issuerName, identity: trust.identity, minimum: trust.minimum,
            certificates: trust.certificates.map(\.compact), created: created, code: invite.code,
            pid: invite.scanned?.content.pid)
    }
}
