package import AssentCore

/// A callback that only its node and its client know: the server passes it on, and a hosted page cannot ask it.
package struct CustomCallback: Sendable, Hashable {
    /// The name that the client knows it by.
    package let kind: CallbackKind

    /// What it tells the client, in order.
    package let outputs: JSONObject

    /// What it asks for.
    package let inputs: [CallbackInput]

    /// A callback.
    package init(_ name: String, outputs: JSONObject = JSONObject(), inputs: [CallbackInput] = []) {
        kind = CallbackKind(rawValue: name)
        self.outputs = outputs
        self.inputs = inputs
    }
}
