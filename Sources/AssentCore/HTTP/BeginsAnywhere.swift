/// A part of this library that a call passes before it waits for the first time, and that runs nothing of the app's
/// until then.
///
/// A call whose parts are all like this may begin on a thread that apps must not wait on: on the queue of a
/// `URLSession`, for which `URLSession` itself waits when somebody makes, resumes or cancels a task of that session.
package protocol BeginsAnywhere: Sendable {
    /// Whether the parts that it was given do so, too.
    var beginsAnywhere: Bool { get }
}

extension BeginsAnywhere {
    /// It has no such parts.
    package var beginsAnywhere: Bool { true }
}
