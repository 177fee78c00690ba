package import AssentCore

/// What happened to a device, as the user's other devices hear it.
public enum DeviceEvent: String, Hashable, Sendable, CaseIterable {
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
package struct Notice: MessagePart, Hashable {
    /// The most of one list.
    package static let limit = 16

    /// Its id.
    package let id: SigningID
    /// When it happened.
    package let at: Int
    /// What.
    package let event: DeviceEvent
    /// The device.
    package let did: SigningID
    /// The device's name.
    package let name: String

    /// The content with these members; the reader checks their bounds.
    package init(id: SigningID, at: Int, event: DeviceEvent, did: SigningID, name: String) {
        self.id = id
        self.at = at
        self.event = event
        self.did = did
        self.name = name
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        id = try reader.fixed("id")
        at = try reader.integer("at")
        event = try reader.choice("event")
        did = try reader.fixed("did")
        name = try reader.shown("name", 1...128)
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        [
            "id": id.json, "at": .integer(at), "event": .string(event.rawValue), "did": did.json,
            "name": .string(name),
        ]
    }
}
