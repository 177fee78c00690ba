public import AssentCore

/// The texts of a transaction, in the order in which they are to be shown. They were checked: nothing in them hides or
/// reorders other characters. What the app shows and what is signed are this one value.
public struct SigningDisplay: Sendable, Hashable {
    /// Who asks.
    public let relyingParty: String
    /// The title.
    public let title: String
    /// The text, if there is one.
    public let text: String?
    /// A warning, if there is one.
    public let warning: String?
    /// The place where the request began, if it is known.
    public let place: String?
    /// The network address where the request began, if it is known.
    public let address: String?
    /// The details.
    public let fields: [DisplayField]

    /// The texts of a document.
    package init(_ document: TransactionDocument) {
        let body = document.body
        relyingParty = body.relyingParty.name
        title = body.title
        text = body.text
        warning = body.warning
        place = body.origin?.place
        address = body.origin?.address
        fields = body.fields.map { DisplayField(label: $0.label, value: $0.display) }
    }

    /// The texts whose hash is `dsp`, in that order, with the status that the user chose and the number that the user
    /// typed: each is there also when it is empty.
    package func texts(status: DocumentStatus, match: String?) -> [String] {
        [relyingParty, title, text ?? "", warning ?? "", place ?? "", address ?? ""]
            + fields.flatMap { [$0.label, $0.value] } + [status.label, match ?? ""]
    }
}
