/// What happened to a device, as the user's other devices hear it.
public enum DeviceEvent: String, Hashable, MemberValue, CaseIterable {
    /// It was enrolled.
    case enrolled
    /// It has new keys and, where it has one, a new PIN, for which no old key has vouched.
    case reset
    /// Its store may have been copied.
    case suspect
    /// It has ended.
    case removed
}

/// Something that has happened to another device of the user.
package struct Notice: ShapedPart, Hashable {
    /// The most of one list.
    package static let limit = 16

    package let id: SigningID
    /// When it happened.
    package let at: Int
    package let event: DeviceEvent
    package let did: SigningID
    package let name: String

    package init(id: SigningID, at: Int, event: DeviceEvent, did: SigningID, name: String) {
        (self.id, self.at, self.event, self.did, self.name) = (id, at, event, did, name)
    }

    package static let shape = MessageShape<Self>(Self.init) {
        Member("id", \.id)
        Member("at", \.at)
        Member("event", \.event)
        Member("did", \.did)
        Member("name", \.name, .shown(1...128))
    }
}
