import AssentSigningProtocol

/// When a status was signed, beside the one that was taken over while it was asked for.
enum StatusOrder: Hashable, CaseIterable {
    case earlier
    /// In the same second, so that nobody knows which one is newer.
    case together
    /// Or no other one was taken over meanwhile.
    case later

    /// Compares the time of a status with that of another one. Without another one it is `later`.
    init(_ time: Int, after other: Int?) {
        guard let other, time <= other else {
            self = .later
            return
        }
        self = time == other ? .together : .earlier
    }
}

extension ContainerState {
    /// What takes more away has the higher number. A container that is not confirmed yet has nothing, but it never goes
    /// back to that.
    var strictness: Int {
        switch self {
        case .unconfirmed: 0
        case .active: 1
        case .suspect: 2
        case .blocked: 3
        case .revoked, .void: 4
        }
    }
}

extension PasswordSlotState {
    /// What takes more away has the higher number.
    var strictness: Int {
        switch self {
        case .open: 0
        case .locked: 1
        case .shredded: 2
        }
    }
}
