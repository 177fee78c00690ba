import AssentStore

/// Lets one device enrol for one user.
package struct SigningInviteRecord: Sendable, Hashable {
    /// Seconds for which an invite is valid.
    package static let lifetime: Int64 = 15 * 60

    /// Seconds after an invite's end until an enrolment that was not completed is void.
    package static let completion: Int64 = 600

    /// How many devices may begin with one invite.
    static let starts = 5

    /// How many times digits may be entered.
    static let tries: Int64 = 3

    /// Who made it.
    package enum Maker: String, Sendable, Hashable {
        /// The user.
        case user = "invite"
        /// An administrator.
        case administrator
    }

    /// Where it stands.
    package enum State: String, Sendable, Hashable {
        /// A device may begin.
        case open = "OPEN"
        /// A device has enrolled with it.
        case used = "USED"
        /// It counts no more.
        case void = "VOID"
    }

    /// The id.
    package let pid: String

    /// The user who gets a device.
    package let userID: String

    /// The user's name.
    package let username: String

    /// Who made it.
    package let maker: Maker

    /// Where it stands.
    package var state: State = .open

    /// When it was made, in seconds since 1970.
    package let createdAt: Int64

    /// When it is over, in seconds since 1970.
    package let expiresAt: Int64

    /// The container that has committed to its keys.
    package var committed: String?

    /// The container whose keys are to be new ones; `nil` for a new container.
    package var did: String?

    /// How often digits were entered.
    package var tries: Int64 = 0

    /// A new invite.
    package init(
        pid: String, userID: String, username: String, maker: Maker, createdAt: Int64,
        lifetime: Int64 = SigningInviteRecord.lifetime
    ) {
        self.pid = pid
        self.userID = userID
        self.username = username
        self.maker = maker
        self.createdAt = createdAt
        expiresAt = createdAt + lifetime
    }

    init(_ row: SQLRow) throws {
        guard let maker = Maker(rawValue: try row.text("made_by")), let state = State(rawValue: try row.text("state"))
        else { throw StoreError(.corrupt, "unknown state of an invite") }
        pid = try row.text("pid")
        userID = try row.text("user_id")
        username = try row.text("username")
        self.maker = maker
        self.state = state
        createdAt = try row.integer("created_at")
        expiresAt = try row.integer("expires_at")
        committed = try row.optionalText("committed")
        did = try row.optionalText("did")
        tries = try row.integer("tries")
    }
}
