import AssentCore

/// One value that a callback asks for.
package struct CallbackInput: Sendable, Hashable {
    /// What stands there before the user has answered.
    package enum Initial: Sendable, Hashable {
        /// A text.
        case text(String)
        /// One of this many choices, by its index from 0.
        case index(Int, of: Int)
    }

    /// Which of the callback's values it is, for example `jws`; empty when there is one only.
    package let part: String

    /// What stands there before the user has answered.
    package let initial: Initial

    /// The most bytes of a text.
    package static let textLimit = 4096

    /// A text.
    package static func text(_ initial: String = "", part: String = "") -> CallbackInput {
        CallbackInput(part: part, initial: .text(initial))
    }

    /// An index from 0.
    package static func index(of count: Int, initial: Int) -> CallbackInput {
        CallbackInput(part: "", initial: .index(initial, of: count))
    }
}

extension CallbackInput {
    /// The input as it is stored between two pages.
    var json: JSONValue {
        switch initial {
        case .text(let text): ["part": .string(part), "text": .string(text)]
        case .index(let index, let count): ["part": .string(part), "index": .integer(index), "of": .integer(count)]
        }
    }

    /// Reads what ``json`` has written; `nil` for anything else.
    init?(_ json: JSONValue) {
        guard let part = json["part"]?.string else { return nil }
        if let text = json["text"]?.string {
            self.init(part: part, initial: .text(text))
        } else if let index = json["index"]?.integer, let count = json["of"]?.integer {
            self.init(part: part, initial: .index(Int(index), of: Int(count)))
        } else {
            return nil
        }
    }
}
