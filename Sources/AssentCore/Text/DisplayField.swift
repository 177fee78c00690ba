/// A labelled value that a user is shown, for example what a payment is about before it is approved.
public struct DisplayField: Hashable, Sendable {
    /// What the value is, for example `Amount`.
    public let label: String

    /// The value, for example `200.00 EUR`.
    public let value: String

    /// A labelled value.
    public init(label: String, value: String) {
        self.label = label
        self.value = value
    }
}
