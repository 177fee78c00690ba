import Dispatch

/// Runs an actor's work on a queue of its own, so that waiting for a disk, a token or scrypt holds up no cooperative
/// thread.
package final class FileThread: SerialExecutor {
    private let queue = DispatchQueue(label: "assent.vault")

    package init() {}

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
}
