import AssentSigningProtocol
import AssentStore

/// Lets one device enrol for one user. Times are seconds since 1970.
struct SigningInviteRecord: Sendable, Hashable {
    /// Seconds for which an invite is valid.
    static let lifetime: Int64 = 15 * 60

    /// Seconds after an invite's end until an enrolment that was not completed is void.
    static let completion: Int64 = 600

    /// How many devices may begin with one invite.
    static let starts = 5

    /// How many times digits may be entered.
    static let tries: Int64 = 3

    enum Maker: String, SQLConstant {
        case user = "invite"
        case administrator

        /// What a record says of it.
        var ground: RecordGround { self == .administrator ? .administrator : .invite }
    }

    enum State: String, SQLConstant {
        /// A device may begin.
        case open = "OPEN"
        /// A device has enrolled with it.
        case used = "USED"
        case void = "VOID"
    }

    let pid: SigningID
    /// The user who gets a device.
    let userID: String
    let username: String
    let maker: Maker
    var state: State = .open
    let createdAt: Int64
    let expiresAt: Int64
    /// The container that has committed to its keys.
    var committed: SigningID?
    /// The container whose keys are to be new ones; `nil` for a new container.
    var did: SigningID?
    /// How often digits were entered.
    var tries: Int64 = 0
}

extension SigningInviteRecord {
    init(
        pid: SigningID, userID: String, username: String, maker: Maker, createdAt: Int64,
        lifetime: Int64 = SigningInviteRecord.lifetime, did: SigningID? = nil
    ) {
        self.init(
            pid: pid, userID: userID, username: username, maker: maker, createdAt: createdAt,
            expiresAt: createdAt + lifetime, did: did)
    }

    init(_ row: SQLRow) throws {
        self.init(
            pid: try row.value("pid"), userID: try row.text("user_id"), username: try row.text("username"),
            maker: try row.value("made_by"), state: try row.value("state"), createdAt: try row.integer("created_at"),
            expiresAt: try row.integer("expires_at"), committed: try row.optional("committed"),
            did: try row.optional("did"), tries: try row.integer("tries"))
    }
}
