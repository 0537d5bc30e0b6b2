// Which answers still count, where the one to an older question may come later.

/**
 * Takes the number of each question of one kind. What it gives for a question tells, when the answer is there,
 * whether it is news: no newer question has been answered before.
 * @returns {() => () => boolean}
 */
export function turns() {
  let asked = 0;
  let newest = 0;
  return () => {
    const mine = (asked += 1);
    return () => {
      if (mine < newest) return false;
      newest = mine;
      return true;
    };
  };
}
