/// One callback as a client has sent it back, before it is compared with what was asked.
package struct ReturnedCallback: Sendable, Hashable {
    /// Its kind; `nil` when the client did not say one.
    package let kind: CallbackKind?

    /// Its values; `nil` when there was no list of them.
    package let inputs: [ReturnedInput]?

    /// A callback that came back.
    package init(kind: CallbackKind?, inputs: [ReturnedInput]?) {
        self.kind = kind
        self.inputs = inputs
    }
}

/// One value of a callback that came back.
package struct ReturnedInput: Sendable, Hashable {
    /// A value as it came.
    package enum Value: Sendable, Hashable {
        /// A text.
        case text(String)
        /// A whole number.
        case number(Int64)
        /// Something else, or nothing.
        case none
    }

    /// Which value it says it is; `nil` when it says nothing.
    package let name: InputName?

    /// The value.
    package let value: Value

    /// A value that came back.
    package init(name: InputName?, value: Value) {
        self.name = name
        self.value = value
    }
}

/// Which value of a page is meant.
package struct InputName: Sendable, Hashable {
    /// The callback's place on its page, counted from 1, whether or not the callbacks before it ask anything.
    package let place: Int

    /// Which of the callback's values; empty when there is one only.
    package let part: String

    /// A name. No value of a page has the place 0.
    package init(place: Int, part: String = "") {
        self.place = place
        self.part = part
    }
}

/// What the user has answered to one callback, after it was compared with what was asked.
package struct CallbackResponse: Sendable, Hashable {
    /// One value for each input.
    package let values: [String]

    /// The first value, or an empty text.
    package var text: String { values.first ?? "" }

    /// The first value as an index; only meaningful for a choice, where it is one of the choices.
    package var index: Int { Int(text) ?? 0 }
}
