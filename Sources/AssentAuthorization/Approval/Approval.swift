public import AssentCore
public import AssentJourney
public import Foundation

/// What the user is asked to approve, with the step of the journey that asks.
public struct Approval: Sendable {
    /// What the server wants.
    public let advice: Advice

    /// The method of the request that will be repeated.
    public let method: String

    /// The URL of the request that will be repeated.
    public let url: String

    /// What the server says is being approved, for example an amount and a payee, made by it from the body that it saw.
    /// The texts have no control characters and none that hide or reorder others. Empty when it does not say.
    public internal(set) var display: [DisplayField]

    /// Which parts of the request the approval is for.
    public internal(set) var binding: ApprovalBinding

    /// When it is too late to approve, if the server says so.
    public internal(set) var expiresAt: Date?

    /// Whether this is the first step of the journey: the one in which to show what is being approved.
    public let isFirstStep: Bool

    /// The step of the journey. Answer it here.
    public var step: JourneyStep

    /// What to tell the user when the answer is given elsewhere, for example on their device: what to do there and the
    /// number to type. `nil` when this step does not wait.
    ///
    /// **Show it.** Without it the user does not know that anything is asked of them, and the call waits until it is
    /// too late. The handler is called again with the same step as long as it waits.
    public var waiting: JourneyWait? {
        step.waiting.map { JourneyWait(text: $0.text, number: $0.number, until: $0.until ?? expiresAt) }
    }

    /// Presses the step's button that agrees. Nothing happens when the step has none, when it waits for an answer from
    /// elsewhere, or when it has several buttons that do not refuse: then set
    /// ``/AssentJourney/ConfirmationCallback/selectedValue``.
    public mutating func agree() {
        // The button of a step that waits ends the wait.
        guard step.waiting == nil else { return }
        if let value = step[ConfirmationCallback.self]?.agreeValue {
            step[ConfirmationCallback.self]?.selectedValue = value
        }
    }

    /// The transaction's id; `nil` when the server wants a journey and not an approval of this request.
    public var transactionID: String? { if case .transaction(let id) = advice.kind { id } else { nil } }
}
