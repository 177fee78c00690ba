/// A value as somebody configured it: parsed from a file or from JSON, not yet understood.
package indirect enum SettingsValue: Sendable {
    /// One value. `text` is what it says as a text; `nil` when the format has texts of their own and this is none.
    case scalar(JSONValue, text: String?)
    /// A list.
    case list([SettingsValue])
    /// A mapping, in the order in which it is written.
    case mapping([Member])

    /// A key of a mapping and its value.
    package struct Member: Sendable {
        /// The key.
        package let name: String

        /// The value.
        package let value: SettingsValue

        /// A member.
        package init(name: String, value: SettingsValue) {
            self.name = name
            self.value = value
        }
    }

    /// A value of JSON. Only its strings are texts.
    package init(_ json: JSONValue) {
        switch json {
        case .array(let elements): self = .list(elements.map { SettingsValue($0) })
        case .object(let object):
            self = .mapping(object.members.map { Member(name: $0.name, value: SettingsValue($0.value)) })
        default: self = .scalar(json, text: json.string)
        }
    }

    /// The value as JSON.
    package var json: JSONValue {
        switch self {
        case .scalar(let json, _): json
        case .list(let elements): .array(elements.map(\.json))
        case .mapping(let members):
            .object(JSONObject(members.map { JSONObject.Member(name: $0.name, value: $0.value.json) }))
        }
    }

    /// The text of a scalar that is not empty.
    var text: String? {
        guard case .scalar(_, let text?) = self, !text.isEmpty else { return nil }
        return text
    }
}
